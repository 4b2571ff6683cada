"""The queue pauses for what was found wrong with its landings, once for each, whatever state it is in."""

import pytest

from mergeyard.domain import events as e
from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.journal import QueueChanged
from mergeyard.domain.mismatches import Doubt, Mismatch
from mergeyard.domain.reasons import Reason
from mergeyard.domain.states import QueueState
from mergeyard.engine.doubting import MOST_REMEMBERED
from tests.support.builders import Yard, a_yard


def a_mismatch(number: int, words: str = "Compare it.") -> Mismatch:
    return Mismatch(doubt=Doubt.OTHER_TREE, commit=Sha(f"commit {number}"), number=PrNumber(number), words=words)


def doubted(*numbers: int) -> e.LandingsDoubted:
    return e.LandingsDoubted(mismatches=tuple(map(a_mismatch, numbers)))


def told(yard: Yard, event: e.Event) -> list[Reason]:
    return [entry.reason for entry in yard.tell(event).journal if isinstance(entry, QueueChanged)]


@pytest.mark.parametrize("state", [QueueState.RUNNING, QueueState.DRAINING])
def test_a_mismatch_pauses_the_queue_and_says_why(state: QueueState):
    yard = a_yard()
    yard.tell(e.StateRequested(state=state))
    assert told(yard, doubted(1)) == [Reason.AUDIT_MISMATCH]
    assert (yard.queue.state, yard.queue.words) == (QueueState.PAUSED, "Compare it.")


def test_a_mismatch_in_a_paused_queue_is_told_all_the_same():
    yard = a_yard()
    yard.tell(e.StateRequested(state=QueueState.PAUSED))
    assert told(yard, doubted(1)) == [Reason.AUDIT_MISMATCH]
    assert yard.queue.words == "Compare it."


def test_the_same_mismatch_is_no_news_whatever_its_words():
    yard = a_yard()
    yard.tell(doubted(1))
    before = yard.queue
    yard.tell(e.LandingsDoubted(mismatches=(a_mismatch(1, "In other words."),)))
    assert yard.queue is before


def test_whoever_resumes_has_seen_it():
    yard = a_yard()
    yard.tell(doubted(1))
    yard.tell(e.StateRequested(state=QueueState.RUNNING))
    yard.tell(doubted(1))
    assert (yard.queue.state, yard.queue.words) == (QueueState.RUNNING, "")


def test_another_mismatch_pauses_it_again():
    yard = a_yard()
    yard.tell(doubted(1))
    yard.tell(e.StateRequested(state=QueueState.RUNNING))
    yard.tell(doubted(1, 2))
    assert yard.queue.state is QueueState.PAUSED


def test_of_many_mismatches_the_first_are_told_and_the_others_counted():
    yard = a_yard()
    yard.tell(doubted(1, 2, 3, 4, 5))
    assert yard.queue.words == "Compare it. Compare it. Compare it. And 2 more: `mergeyard audit` lists them."


def test_what_a_queue_remembers_does_not_grow_for_ever():
    yard = a_yard()
    yard.tell(doubted(*range(1, MOST_REMEMBERED + 10)))
    assert len(yard.queue.target.doubted) == MOST_REMEMBERED
    yard.tell(e.StateRequested(state=QueueState.RUNNING))
    yard.tell(doubted(MOST_REMEMBERED))
    assert yard.queue.state is QueueState.RUNNING


def test_nobody_loses_a_place_by_it():
    yard = a_yard(prs=2)
    before = yard.picture
    yard.tell(doubted(1))
    assert yard.picture == before
