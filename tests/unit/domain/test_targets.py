"""Who shares a target with whom."""

import pytest

from mergeyard.domain.targets import ALL, NOTHING, Targets, named, union


@pytest.mark.parametrize(
    ("one", "other"),
    [(named("a", "b"), named("b", "c")), (ALL, named("a")), (named("a"), ALL), (ALL, NOTHING), (ALL, ALL)],
)
def test_they_share(one: Targets, other: Targets):
    assert one.share_with(other)


@pytest.mark.parametrize(
    ("one", "other"), [(named("a"), named("b")), (named("a"), NOTHING), (NOTHING, NOTHING), (NOTHING, named("a"))]
)
def test_they_do_not_share(one: Targets, other: Targets):
    assert not one.share_with(other)


def test_a_union_holds_the_names_of_all():
    assert union([named("a"), NOTHING, named("b", "c")]) == named("a", "b", "c")


def test_a_union_with_everything_is_everything():
    assert union([named("a"), ALL]) == ALL


def test_a_union_of_none_is_nothing():
    assert union([]) == NOTHING
