"""Impacted targets, listed."""

from mergeyard.domain.targets import ALL, NOTHING, named
from mergeyard.web.impact import listed


def test_the_first_are_listed_and_the_others_counted():
    shown = listed(named("c", "a", "b"), most=2)
    assert (shown.names, shown.more) == (("a", "b"), 1)


def test_all_and_nothing_are_neither_listed_nor_confused():
    assert listed(ALL).everything
    assert not listed(ALL).nothing
    assert listed(NOTHING).nothing
