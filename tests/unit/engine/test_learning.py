"""What the queue learns from those that leave, and how it tells in a guess."""

import pytest
from msgspec.structs import replace

from mergeyard.domain.experience import Experience
from mergeyard.domain.ids import RunId
from mergeyard.domain.pulls import Submission
from mergeyard.domain.queue import Queue
from mergeyard.domain.reasons import Reason
from mergeyard.domain.states import PrState
from mergeyard.domain.targets import ALL, Targets, named
from mergeyard.engine.learning import FEW_TARGETS, MOST_FAILED, MOST_TRAITS, chance, learn
from tests.support.builders import a_plain_queue, a_submission


def a_stay(number: int = 1, *, author: str = "", targets: Targets | None = None) -> Submission:
    stay = a_submission(number)
    return replace(stay, pull=replace(stay.pull, author=author), targets=targets)


def merged(stay: Submission) -> Submission:
    return replace(stay, state=PrState.MERGED, reason=Reason.MERGED_BY_QUEUE, verified_by=RunId("run"))


def failed(stay: Submission) -> Submission:
    return replace(stay, state=PrState.FAILED, reason=Reason.TEST_RUN_FAILED)


def taught(*ends: Submission) -> Queue:
    queue = a_plain_queue()
    for end in ends:
        queue = learn(queue, end)
    return queue


def test_before_anybody_left_nine_of_ten_are_expected_to_pass():
    assert chance(a_plain_queue(), a_stay()) == pytest.approx(0.9, abs=0.01)


def test_whoever_merges_raises_the_hopes_of_all_and_whoever_fails_lowers_them():
    before = chance(a_plain_queue(), a_stay())
    assert chance(taught(merged(a_stay(2))), a_stay()) > before > chance(taught(failed(a_stay(2))), a_stay())


def test_an_author_is_known_by_what_became_of_the_last_ones():
    queue = taught(*[failed(a_stay(number, author="bo")) for number in range(2, 12)])
    assert chance(queue, a_stay(author="bo")) < chance(queue, a_stay(author="ann"))


def test_a_target_is_known_by_what_became_of_those_that_touched_it():
    queue = taught(*[failed(a_stay(number, targets=named("ui"))) for number in range(2, 12)])
    assert chance(queue, a_stay(targets=named("ui"))) < chance(queue, a_stay(targets=named("docs")))


def test_who_failed_before_is_trusted_less():
    queue = taught(failed(a_stay(1)))
    assert chance(queue, a_stay(1)) < chance(queue, a_stay(2))


@pytest.mark.parametrize("targets", [ALL, named(*map(str, range(FEW_TARGETS + 1)))])
def test_who_touches_much_is_trusted_a_little_less(targets: Targets):
    queue = a_plain_queue()
    assert chance(queue, a_stay(targets=targets)) < chance(queue, a_stay(targets=named("ui")))


@pytest.mark.parametrize(
    "gone",
    [
        replace(a_stay(), state=PrState.CANCELLED, reason=Reason.CANCELLED_BY_USER),
        replace(a_stay(), state=PrState.FAILED, reason=Reason.MERGE_CONFLICT),
        replace(a_stay(), state=PrState.MERGED, reason=Reason.MERGED_MANUALLY),
    ],
    ids=lambda gone: gone.reason,
)
def test_nothing_is_learned_from_whom_no_test_judged(gone: Submission):
    assert taught(gone).experience == Experience()


def test_what_is_remembered_has_a_bound_and_the_oldest_is_forgotten():
    ends = [failed(a_stay(number, author=f"author{number}")) for number in range(1, MOST_TRAITS + 2)]
    known = taught(*ends).experience
    assert len(known.weights) == MOST_TRAITS
    assert "author author1" not in known.weights
    assert f"author author{MOST_TRAITS + 1}" in known.weights
    assert len(known.failed) == MOST_FAILED
