"""What responses show of a pull request: what the rules of its Git host require."""

from typing import Any

from msgspec import json

from mergeyard.api.presenting import encode, present_pull_request, present_queue
from mergeyard.domain.ids import QueueKey, Repo
from mergeyard.domain.pull_requests import Requirement
from mergeyard.domain.states import Reason
from mergeyard.service.views import view_queue, view_submission
from tests.support.builders import QueueWorld, a_world

KEY = QueueKey(Repo("git.local", "acme", "app"), "main")


def a_world_with_requirements(*required: Requirement) -> QueueWorld:
    world = a_world()
    world.open_pull_request(1)
    world.change(1, requirements=required)
    world.submit(1)
    return world


def shown_requirements(world: QueueWorld) -> list[dict[str, Any]]:
    """As in the response for the pull request, which are also those in the response for the queue."""
    shown = json.decode(encode(present_pull_request(view_submission(world.queue, world.submission(1), world.now))))
    queue = json.decode(encode(present_queue(view_queue(KEY, world.queue, world.now), with_pull_requests=True)))
    assert queue["enqueuedPullRequests"][0]["requirements"] == shown["requirements"]
    return shown["requirements"]


def test_requirements_are_shown_in_the_order_of_their_reasons_also_when_met():
    world = a_world_with_requirements(
        Requirement(reason=Reason.WAITING_FOR_CONVERSATIONS, given=1),
        Requirement(reason=Reason.WAITING_FOR_REVIEW, needed=2, given=1, names=("@acme/db",)),
    )
    assert shown_requirements(world) == [
        {
            "code": "waiting_for_review",
            "message": "Waiting for a review from @acme/db (1 of 2 approvals).",
            "needed": 2,
            "given": 1,
            "names": ["@acme/db"],
            "met": False,
        },
        {
            "code": "waiting_for_conversations",
            "message": "All review conversations are resolved.",
            "needed": 1,
            "given": 1,
            "names": [],
            "met": True,
        },
    ]


def test_a_rule_that_cannot_be_read_has_an_unknown_count():
    unread = Requirement(reason=Reason.HOST_RULE_UNREADABLE, given=None, names=("Members: Read-only",))
    (shown,) = shown_requirements(a_world_with_requirements(unread))
    assert (shown["given"], shown["met"], shown["names"]) == (None, False, ["Members: Read-only"])


def test_a_git_host_without_rules_requires_nothing():
    assert shown_requirements(a_world_with_requirements()) == []
