"""Events can be stored and read again, and every refusal to build has its meaning."""

import msgspec
import pytest

from mergeyard.domain import events as e
from mergeyard.domain.config import Config
from mergeyard.domain.ids import PrNumber, RunId, Sha, Ticket
from mergeyard.domain.mismatches import Doubt, Mismatch
from mergeyard.domain.states import CheckState, QueueState
from mergeyard.domain.targets import named
from tests.support.builders import a_pull, a_step, an_exam

RUN = RunId("run")
NUMBER = PrNumber(1)
ONE_OF_EACH: list[e.Event] = [
    e.PrSubmitted(pull=a_pull(), as_of=3, priority=0, targets=named("a")),
    e.CancelRequested(number=NUMBER),
    e.RestartRequested(number=NUMBER),
    e.PriorityRequested(number=NUMBER, priority=7),
    e.TargetsUploaded(number=NUMBER, head=Sha("head"), targets=named("a")),
    e.SettingsSaved(config=Config(concurrency=7)),
    e.StateRequested(state=QueueState.DRAINING),
    e.PullTouched(number=NUMBER),
    e.TargetTouched(),
    e.PullSeen(pull=a_pull(contains={2: "head2"}), as_of=3),
    e.TargetSeen(tip=None, as_of=3, removed=frozenset({Sha("gone")})),
    e.ChecksSeen(run=RUN, checks={"unit": CheckState.PASSED}, as_of=3),
    e.HostLost(),
    e.HostFound(),
    e.RunBuilt(run=RUN, steps=(a_step("1"),)),
    e.GroundLost(run=RUN),
    e.RunRefused(run=RUN, ticket=Ticket(1), refusal=e.BuildRefusal.REFUSED, blockers=(Ticket(2),), words="no"),
    e.BranchDeleted(run=RUN),
    e.HeadExamined(ticket=Ticket(1), exam=an_exam(holds_removed_commit=True), forbidden=frozenset({Sha("x")})),
    e.LandingComposed(landing=1, steps=(a_step("1"),)),
    e.CompositionRefused(landing=1),
    e.LandingRead(landing=1, pulls=(a_pull(),), as_of=3),
    e.LandingSucceeded(landing=1, steps=(a_step("1"),)),
    e.LandingMissed(landing=1),
    e.LandingRefused(landing=1, words="no", ticket=Ticket(1)),
    e.LandingLost(landing=1),
    e.LandingsDoubted(mismatches=(Mismatch(doubt=Doubt.MISSING, commit=Sha("1"), number=NUMBER, words="gone"),)),
    e.WatchBegan(),
]


def test_there_is_an_example_of_each():
    assert {type(event) for event in ONE_OF_EACH} == set(e.Happened.__subclasses__())


@pytest.mark.parametrize("event", ONE_OF_EACH, ids=lambda event: type(event).__name__)
def test_an_event_is_the_same_after_a_journey_through_json(event: e.Event):
    assert msgspec.json.decode(msgspec.json.encode(event), type=e.Event) == event


def test_every_refusal_to_build_ends_a_stay_but_those_that_hold_or_merge():
    elsewhere = {e.BuildRefusal.CONFLICTS_WITH_STACK, e.BuildRefusal.ALREADY_CONTAINED}
    assert set(e.REFUSAL_REASONS) == set(e.BuildRefusal) - elsewhere
