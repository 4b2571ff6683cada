"""The head index knows only what a refresh or a note has recorded."""

from mergeyard.domain.ids import PullRequestNumber, Sha
from mergeyard.service.pull_request_reader import HeadIndex

MAIN = "refs/heads/main"
TIP, OTHER_TIP = Sha("tip"), Sha("other tip")
HEAD, OTHER_HEAD = Sha("head"), Sha("other head")
ONE, TWO = PullRequestNumber(1), PullRequestNumber(2)


def an_index(**heads: Sha) -> HeadIndex:
    """The target branch contains `HEAD`."""
    index = HeadIndex()
    found = {PullRequestNumber(number): head for number, head in enumerate(heads.values(), start=1)}
    index.record_refresh(found, {MAIN: (TIP, frozenset([HEAD]))})
    return index


def test_a_target_branch_contains_only_the_heads_found_by_the_refresh():
    index = an_index(one=HEAD, two=OTHER_HEAD)
    assert index.is_contained(MAIN, TIP, ONE, HEAD) is True
    assert index.is_contained(MAIN, TIP, TWO, OTHER_HEAD) is False


def test_containment_is_unknown_for_other_branches_tips_and_heads():
    index = an_index(one=HEAD)
    assert index.is_contained(MAIN, OTHER_TIP, ONE, HEAD) is None
    assert index.is_contained("refs/heads/other", TIP, ONE, HEAD) is None
    assert index.is_contained(MAIN, TIP, ONE, OTHER_HEAD) is None
    assert index.is_contained(MAIN, TIP, TWO, OTHER_HEAD) is None


def test_an_unverified_head_is_compared_by_the_next_refresh():
    index = an_index(one=HEAD)
    index.note_unverified(TWO, OTHER_HEAD)
    assert index.heads == {ONE: HEAD, TWO: OTHER_HEAD}
    assert index.is_contained(MAIN, TIP, TWO, OTHER_HEAD) is None
    assert index.find_unverified({ONE: HEAD, TWO: OTHER_HEAD}) == [TWO]
    index.record_refresh({TWO: OTHER_HEAD}, {})
    assert index.is_contained(MAIN, TIP, TWO, OTHER_HEAD) is False
    assert index.find_unverified({ONE: HEAD, TWO: OTHER_HEAD}) == []


def test_a_push_replaces_the_head_of_one_pull_request_only():
    index = an_index(one=HEAD, two=HEAD)
    index.note_unverified(ONE, OTHER_HEAD)
    assert index.heads == {ONE: OTHER_HEAD, TWO: HEAD}


def test_forgetting_keeps_unverified_heads():
    index = an_index(one=HEAD, two=OTHER_HEAD)
    index.note_unverified(PullRequestNumber(3), TIP)
    index.forget_except([TWO])
    assert set(index.heads.values()) == {OTHER_HEAD, TIP}
    assert index.is_contained(MAIN, TIP, ONE, HEAD) is None


def test_a_postponed_refresh_makes_the_index_outdated_until_the_next_one():
    index = an_index(one=HEAD)
    reported = {TWO: OTHER_HEAD}
    index.postponed = reported
    assert set(index.known_numbers or ()) == {TWO}
    index.record_refresh(reported, {}, postponed=reported)
    assert index.postponed is None


def test_heads_that_are_reported_during_a_refresh_are_not_forgotten():
    index = an_index(one=HEAD)
    before = index.postponed = {ONE: HEAD}
    index.postponed = {ONE: HEAD, TWO: OTHER_HEAD}
    index.record_refresh({ONE: HEAD}, {}, postponed=before)
    assert index.postponed == {ONE: HEAD, TWO: OTHER_HEAD}


def test_no_pull_request_is_known_before_the_first_report():
    assert HeadIndex().known_numbers is None
