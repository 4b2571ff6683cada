"""The message of a reason, with what is known about this pull request."""

import pytest
from msgspec.structs import replace

from mergeyard.domain.events import HostUnreachable
from mergeyard.domain.ids import PullRequestNumber
from mergeyard.domain.journal import Cause
from mergeyard.domain.pull_requests import Requirement
from mergeyard.domain.states import REASON_MESSAGES, REQUIREMENT_REASONS, QueueState, Reason
from mergeyard.service.views import MAX_NAMES, MAX_REQUIREMENTS, render_reason, render_requirement, view_submission
from tests.support.builders import a_requirement, a_world


def test_checks_that_have_not_reported_are_named():
    assert render_reason(Reason.WAITING_FOR_CHECKS, checks=("unit", "lint")) == (
        "Waiting for required checks: unit, lint."
    )


def test_a_failure_names_the_pull_requests_that_were_tested_with_it():
    ahead = (PullRequestNumber(1), PullRequestNumber(2))
    message = render_reason(Reason.TEST_RUN_FAILED, "exit code 1", stacked_on=ahead)
    assert message.endswith("submit again. Tested on top of #1, #2. exit code 1")


def test_a_missing_repository_on_a_host_that_responds_is_not_said_to_be_an_outage_of_the_host():
    world = a_world(prs=1)
    world.apply(HostUnreachable())
    message = view_submission(world.queue, world.submission(1), world.now).reason.message
    assert message.startswith("The queue cannot reach the repository on the Git host. ")


def list_causes(count: int, act: Reason | None = None, actor: str = "mergeyard") -> tuple[Cause, ...]:
    return tuple(Cause(PullRequestNumber(number), act, actor) for number in range(1, count + 1))


@pytest.mark.parametrize(
    ("causes", "message"),
    [
        (list_causes(1), "#1 is no longer ahead. This one is tested again without it."),
        (list_causes(2), "#1 and #2 are no longer ahead. This one is tested again without them."),
        (list_causes(4), "#1, #2, #3 and #4 are no longer ahead. This one is tested again without them."),
        (
            list_causes(8),
            "#1, #2, #3, #4, #5 and 3 more are no longer ahead. This one is tested again without them.",
        ),
        (
            list_causes(1, Reason.CANCELLED_BY_USER, "ada#4f1c"),
            "#1, which ada removed, is no longer ahead. This one is tested again without it.",
        ),
        (
            list_causes(2, Reason.CANCELLED_BY_USER, "ada"),
            (
                "#1, which ada removed, and #2, which ada removed, are no longer ahead. "
                "This one is tested again without them."
            ),
        ),
    ],
    ids=["one", "two", "four", "more than are named", "removed", "two removed"],
)
def test_the_pull_requests_that_are_no_longer_ahead_are_named(causes: tuple[Cause, ...], message: str):
    assert render_reason(Reason.PREREQUISITE_REMOVED, causes=causes) == message


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


# What the rules of the Git host require.


def message_of_a_pr_that_needs(*requirements: Requirement) -> str:
    world = a_world()
    world.open_pull_request(1)
    world.change(1, requirements=requirements)
    world.submit(1)
    return view_submission(world.queue, world.submission(1), world.now).reason.message


@pytest.mark.parametrize(
    ("requirement", "message"),
    [
        (
            a_requirement(needed=2, given=1, names=("@acme/db",)),
            "Waiting for a review from @acme/db (1 of 2 approvals).",
        ),
        (a_requirement(needed=2), "Waiting for a review (0 of 2 approvals)."),
        (
            a_requirement(Reason.CHANGES_REQUESTED, names=("ann", "bob")),
            "Changes were requested by ann, bob. Make them, and ask for another review.",
        ),
        (
            a_requirement(Reason.WAITING_FOR_CODE_OWNER, names=("@acme/db",)),
            "Waiting for a review from a code owner: @acme/db.",
        ),
        (
            a_requirement(Reason.WAITING_FOR_LAST_PUSH_APPROVAL, names=("ann",)),
            "Waiting for an approval of the last push, by another person than ann.",
        ),
        (
            a_requirement(Reason.WAITING_FOR_CONVERSATIONS, needed=5, given=2),
            "Unresolved review conversations: 3. Resolve them.",
        ),
        (
            a_requirement(Reason.WAITING_FOR_HEAD_CHECKS, needed=2, names=("unit", "lint")),
            "Required checks of the pull request itself are running or have not reported: unit, lint.",
        ),
        (
            a_requirement(Reason.HEAD_CHECKS_FAILED, names=("unit",)),
            "Required checks of the pull request itself failed: unit. Fix or rerun them.",
        ),
        (
            a_requirement(Reason.WAITING_FOR_DEPLOYMENTS, names=("staging",)),
            "Waiting for a deployment of the head to: staging.",
        ),
        (
            a_requirement(Reason.BLOCKED_BY_HOST_RULE, names=("signed commits",)),
            "A rule of the Git host blocks the pull request: signed commits. Satisfy or change the rule.",
        ),
        (
            a_requirement(Reason.HOST_RULE_UNREADABLE, given=None, names=("Members: Read-only",)),
            "The queue cannot read a rule of the Git host. An administrator has to grant: Members: Read-only.",
        ),
    ],
)
def test_a_missing_requirement_is_named(requirement: Requirement, message: str):
    assert render_requirement(requirement) == message


WITH_NUMBERS = (Reason.WAITING_FOR_REVIEW, Reason.WAITING_FOR_CONVERSATIONS)


@pytest.mark.parametrize("reason", [reason for reason in REQUIREMENT_REASONS if reason not in WITH_NUMBERS])
def test_without_names_the_general_message_is_shown(reason: Reason):
    assert render_requirement(a_requirement(reason)) == REASON_MESSAGES[reason]


def test_of_many_names_some_are_shown():
    names = tuple(f"check{number}" for number in range(MAX_NAMES + 2))
    message = render_requirement(a_requirement(Reason.WAITING_FOR_DEPLOYMENTS, names=names))
    assert message.endswith(f": {', '.join(names[:MAX_NAMES])} and others.")


def test_as_many_names_as_fit_are_all_shown():
    names = tuple(f"check{number}" for number in range(MAX_NAMES))
    message = render_requirement(a_requirement(Reason.WAITING_FOR_DEPLOYMENTS, names=names))
    assert message.endswith(f": {', '.join(names)}.")


def test_a_pull_request_shows_everything_that_it_lacks_and_nothing_that_it_has():
    owner, met = a_requirement(Reason.WAITING_FOR_CODE_OWNER, names=("@acme/db",)), a_requirement(given=1)
    conversations = a_requirement(Reason.WAITING_FOR_CONVERSATIONS)
    assert message_of_a_pr_that_needs(conversations, met, owner) == (
        "Waiting for a review from a code owner: @acme/db. Unresolved review conversations: 1. Resolve them."
    )


def test_of_many_requirements_some_are_shown_and_the_others_are_counted():
    message = message_of_a_pr_that_needs(*[a_requirement()] * (MAX_REQUIREMENTS + 3))
    assert message.count("Waiting for a review") == MAX_REQUIREMENTS
    assert message.endswith("Further rules that are not met: 3.")


def test_a_pull_request_that_waits_for_something_else_shows_no_requirement():
    world = a_world(prs=1)
    world.change(1, requirements=(a_requirement(Reason.WAITING_FOR_HEAD_CHECKS, names=("unit",)),))
    world.apply(world.observe_pull_request(1))
    message = view_submission(world.queue, world.submission(1), world.now).reason.message
    assert "pull request itself" not in message


@pytest.mark.parametrize(
    ("requirement", "message"),
    [
        (a_requirement(needed=2, given=2, names=("@acme/db",)), "2 of 2 approvals."),
        (a_requirement(needed=2, given=3), "3 approvals, 2 required."),
        (a_requirement(Reason.WAITING_FOR_CONVERSATIONS, given=1), "All review conversations are resolved."),
        (
            a_requirement(
                Reason.HOST_RULE_UNREADABLE, given=None, names=("Members: Read-only",), blocks_if_unknown=False
            ),
            (
                "The queue cannot read a rule of the Git host, and goes on without it. "
                "An administrator can grant: Members: Read-only."
            ),
        ),
    ],
)
def test_a_requirement_that_is_met_or_does_not_block_asks_for_nothing(requirement: Requirement, message: str):
    assert render_requirement(requirement) == message


@pytest.mark.parametrize("reason", REQUIREMENT_REASONS)
def test_what_is_met_is_not_shown_as_missing(reason: Reason):
    met = render_requirement(a_requirement(reason, given=1))
    assert met != render_requirement(a_requirement(reason))
    assert met.endswith(".")
