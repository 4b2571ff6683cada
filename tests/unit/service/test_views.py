"""The message of a reason, with what is known about this pull request."""

from msgspec.structs import replace

from mergeyard.domain.ids import PullRequestNumber
from mergeyard.domain.states import QueueState, Reason
from mergeyard.service.views import render_reason, view_submission
from tests.support.builders import a_world


def test_checks_that_have_not_reported_are_named():
    assert render_reason(Reason.WAITING_FOR_CHECKS, checks=("unit", "lint")) == (
        "Waiting for required checks: unit, lint."
    )


def test_a_failure_names_the_pull_requests_that_were_tested_with_it():
    ahead = (PullRequestNumber(1), PullRequestNumber(2))
    message = render_reason(Reason.TEST_RUN_FAILED, "exit code 1", stacked_on=ahead)
    assert message.endswith("submit again. Tested on top of #1, #2. exit code 1")


def test_a_paused_queue_shows_why_it_was_paused():
    world = a_world(prs=1)
    world.passes(1)
    submission = world.submission(1)
    queue = replace(world.queue, requested_state=QueueState.PAUSED, state_reason="release day")
    message = view_submission(queue, submission, world.now).reason.message
    assert message.startswith("The queue is paused. ")
    assert message.endswith(" Reason: release day")
    without = view_submission(replace(queue, state_reason=""), submission, world.now).reason.message
    assert "Reason" not in without
