"""Events can be stored and read again, and every build refusal has a reason or another effect."""

import msgspec
import pytest

from mergeyard.domain import events as e
from mergeyard.domain.config import Config
from mergeyard.domain.events import Mismatch, MismatchKind
from mergeyard.domain.ids import PullRequestNumber, RunId, Sha, SubmissionId
from mergeyard.domain.pull_requests import impacted_targets_from_names
from mergeyard.domain.states import CheckState, QueueState
from mergeyard.domain.timestamps import Instant
from tests.support.builders import a_pull_request, a_step

RUN = RunId("run")
NUMBER = PullRequestNumber(1)
ONE_OF_EACH: list[e.Event] = [
    e.PullRequestSubmitted(
        pull_request=a_pull_request(),
        observed_at_revision=3,
        priority=0,
        impacted_targets=impacted_targets_from_names("a"),
    ),
    e.CancelRequested(number=NUMBER),
    e.RestartRequested(number=NUMBER),
    e.PriorityRequested(number=NUMBER, priority=7),
    e.ImpactedTargetsUploaded(number=NUMBER, head=Sha("head"), impacted_targets=impacted_targets_from_names("a")),
    e.SettingsSaved(config=Config(concurrency=7)),
    e.StateRequested(state=QueueState.DRAINING),
    e.PullRequestDirty(number=NUMBER),
    e.TargetBranchDirty(),
    e.PullRequestObserved(pull_request=a_pull_request(contains={2: "head2"}), observed_at_revision=3),
    e.TargetBranchObserved(tip=None, observed_at_revision=3, removed_commits=frozenset({Sha("gone")})),
    e.ChecksObserved(run=RUN, checks={"unit": CheckState.PASSED}, observed_at_revision=3),
    e.HostUnreachable(),
    e.HostLimiting(until=Instant(7), only_waiting=True),
    e.HostRefusing(detail="no", number=NUMBER),
    e.ServerFailing(),
    e.HostReachable(),
    e.RunBuilt(run=RUN, steps=(a_step("1"),), head_checks={"unit": CheckState.NEUTRAL}),
    e.BaseCommitMissing(run=RUN),
    e.RunBuildRefused(
        run=RUN, submission_id=SubmissionId(1), refusal=e.BuildRefusal.REFUSED, blockers=(SubmissionId(2),), detail="no"
    ),
    e.BranchDeleted(run=RUN),
    e.LandingRebased(landing=1, steps=(a_step("1"),)),
    e.LandingRebaseRefused(landing=1),
    e.LandingPullRequestsRead(landing=1, pull_requests=(a_pull_request(),), observed_at_revision=3),
    e.LandingSucceeded(landing=1, steps=(a_step("1"),)),
    e.LandingMissed(landing=1),
    e.RunStartRefused(run=RUN, detail="no"),
    e.LandingRefused(landing=1, detail="no", submission_id=SubmissionId(1)),
    e.LandingOutcomeUnknown(landing=1),
    e.AuditMismatchFound(
        mismatches=(Mismatch(kind=MismatchKind.MISSING, commit=Sha("1"), number=NUMBER, message="gone"),)
    ),
    e.ProcessingResumed(),
]


def test_there_is_an_example_of_each():
    assert {type(event) for event in ONE_OF_EACH} == set(e.EventBase.__subclasses__())


@pytest.mark.parametrize("event", ONE_OF_EACH, ids=lambda event: type(event).__name__)
def test_an_event_is_the_same_after_a_json_round_trip(event: e.Event):
    assert msgspec.json.decode(msgspec.json.encode(event), type=e.Event) == event


def test_every_build_refusal_ends_a_submission_except_those_that_hold_or_merge():
    elsewhere = {e.BuildRefusal.CONFLICTS_WITH_STACK, e.BuildRefusal.ALREADY_CONTAINED}
    assert set(e.BUILD_REFUSAL_REASONS) == set(e.BuildRefusal) - elsewhere
