"""Items that are made while the one before is used."""

import threading

import pytest

from cocite.core.progress import ahead


def test_the_next_item_is_made_in_a_thread_while_one_is_worked_on():
    made = [threading.Event() for _ in range(3)]

    def items():
        for number, event in enumerate(made):
            event.set()
            yield number

    seen = []
    for number in ahead(items()):
        assert number == 2 or made[number + 1].wait(10)
        seen.append(number)
    assert seen == [0, 1, 2]


def test_as_many_items_as_asked_for_are_made_before_the_first_is_taken():
    made = [threading.Event() for _ in range(5)]

    def items():
        for number, event in enumerate(made):
            event.set()
            yield number

    upcoming = ahead(items(), 3)
    assert made[2].wait(10)
    assert not made[3].is_set()
    assert list(upcoming) == [0, 1, 2, 3, 4]


def test_an_error_in_the_thread_reaches_who_waits_for_the_item():
    def items():
        yield 0
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        list(ahead(items()))
