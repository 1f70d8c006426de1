"""Items that are made while the one before is used."""

import threading

import pytest

from cocite.core.progress import ahead


@pytest.mark.parametrize("count", [1, 3])
def test_as_many_items_as_asked_for_are_made_in_a_thread_before_each_is_taken(count):
    made = [threading.Event() for _ in range(6)]

    def items():
        for number, event in enumerate(made):
            event.set()
            yield number

    upcoming = ahead(items(), count)
    assert made[count - 1].wait(10)
    assert not made[count].is_set()
    for number, item in enumerate(upcoming):
        assert item == number
        assert number + count >= len(made) or made[number + count].wait(10)


def test_an_error_in_the_thread_reaches_who_waits_for_the_item():
    def items():
        yield 0
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        list(ahead(items()))
