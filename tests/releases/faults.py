"""Faults of the served API and storage: in turn, as a test sets them, or at random, as on a bad day.

A count of `Faults` makes the next so many answers of a kind fail; a share makes any request fail with that probability,
in one of the ways that fit where it goes. The same seed is as hard on every client.
"""

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import count
from random import Random
from typing import Any


class Fault(StrEnum):
    DROPPED = "the connection is closed without an answer"
    CUT = "the connection is closed in the middle of the body"
    SHORT = "the length is announced as less than it is, and so much comes"
    STALLED = "the body stops in the middle, and the connection stays"
    TOO_MANY = "429"
    TOO_MANY_UNTIL = "429 with Retry-After"
    FORBIDDEN = "403"
    FAILING = "500"
    UNAVAILABLE = "503"
    ELSEWHERE = "a redirect to another host"
    LAPSED = "links that have lapsed when they are given"
    ALL_LAPSED = "all links that were given lapse"


COUNTED = {
    "api": {
        "too_many_requests": Fault.TOO_MANY_UNTIL,
        "api_refusals": Fault.FORBIDDEN,
        "api_unavailable": Fault.UNAVAILABLE,
    },
    "listing": {"lapsed_listings": Fault.LAPSED},
    "storage": {"storage_unavailable": Fault.UNAVAILABLE},
    "body": {"cuts": Fault.CUT, "stalls": Fault.STALLED, "short_lengths": Fault.SHORT},
}
_ANYWHERE = (
    *(Fault.DROPPED, Fault.CUT, Fault.SHORT, Fault.STALLED),
    *(Fault.TOO_MANY, Fault.TOO_MANY_UNTIL, Fault.FORBIDDEN, Fault.FAILING),
)
AT_RANDOM = {"api": _ANYWHERE, "storage": (*_ANYWHERE, Fault.ELSEWHERE, Fault.ALL_LAPSED)}
EVERY_FAULT = (*_ANYWHERE, Fault.UNAVAILABLE, Fault.ALL_LAPSED)


@dataclass(kw_only=True)
class Faults:
    """What goes wrong. Counts say how many answers still do; each goes down as it is used."""

    too_many_requests: int = 0
    retry_after: str | None = None
    """The header Retry-After of each 503 and of a 429 that has one, or none."""
    api_refusals: int = 0
    api_unavailable: int = 0
    storage_unavailable: int = 0
    lapsed_listings: int = 0
    cuts: int = 0
    cut_after: int = 0
    """Bytes of the body that are sent before a cut or a stall, and that a short length announces."""
    short_lengths: int = 0
    stalls: int = 0
    stall_seconds: float = 60.0
    share: float = 0.0
    seed: int = 0


class Mishaps:
    """Deals out faults to requests, one each at most."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self._random = Random(faults.seed)
        self._decks: dict[str, list[Fault]] = {kind: [] for kind in AT_RANDOM}
        self._lock = threading.Lock()
        self._ended = threading.Event()

    def strike(self, kind: str) -> Fault | None:
        """The fault of a request that has come to the `api` or the `storage`: at random, or by a count, or none."""
        with self._lock:
            if self._random.random() < self.faults.share:
                return self._draw(kind)
        return self.use_up(kind)

    def _draw(self, kind: str) -> Fault:
        """One way to fail after the other in a random order, so that a short day has all of them."""
        if not self._decks[kind]:
            self._decks[kind] = self._random.sample(AT_RANDOM[kind], len(AT_RANDOM[kind]))
        return self._decks[kind].pop()

    def use_up(self, kind: str) -> Fault | None:
        """The next fault that a count sets for an answer of this kind; the count goes down."""
        with self._lock:
            for count, fault in COUNTED[kind].items():
                left = getattr(self.faults, count)
                if left > 0:
                    setattr(self.faults, count, left - 1)
                    return fault
        return None

    def break_off(self, length: int) -> int:
        """Bytes of a body that come before it breaks off: as many as are set, or at random on a bad day."""
        if not self.faults.share:
            return min(self.faults.cut_after, length)
        with self._lock:
            return self._random.randrange(length) if length else 0

    def stall(self) -> None:
        self._ended.wait(self.faults.stall_seconds)

    def end_stalls(self) -> None:
        self._ended.set()


class OneMishap(Mishaps):
    """A fault that strikes one request, by its number from 0."""

    def __init__(self, number: int, fault: Fault) -> None:
        super().__init__(Faults(cut_after=60, retry_after="0"))
        self.number, self.fault, self._left = number, fault, number

    def strike(self, kind: str) -> Fault | None:
        self._left -= 1
        return self.fault if self._left == -1 else None


def each_request(arrivals: list[Any], first: int) -> Iterator[OneMishap]:
    """Mishaps of one server after the other, which strike each of the requests that it records, and none at last.

    The faults are all in turn, from the one of number `first` on.
    """
    for number in count():
        if number > len(arrivals):
            return
        arrivals.clear()
        yield OneMishap(number, EVERY_FAULT[(first + number) % len(EVERY_FAULT)])
