"""Which comments are written again although no state changed."""

from mergeyard.domain.ids import PullRequestNumber
from mergeyard.domain.pull_requests import Requirement
from mergeyard.domain.queue import Queue
from mergeyard.domain.states import Reason
from mergeyard.service.comments.listener import list_not_ready_for_another_reason
from tests.support.builders import QueueWorld, a_world

REVIEW = Requirement(reason=Reason.WAITING_FOR_REVIEW, needed=2, given=0, names=("@acme/db",))


def a_world_with_requirements(*required: Requirement) -> QueueWorld:
    world = a_world()
    world.open_pull_request(1)
    world.change(1, requirements=required)
    world.submit(1)
    return world


def comments_after(world: QueueWorld, *required: Requirement) -> list[PullRequestNumber]:
    """The comments that are written again after the host reports these requirements."""
    before: Queue = world.queue
    world.change(1, requirements=required)
    world.apply(world.observe_pull_request(1))
    return list_not_ready_for_another_reason(before, world.queue)


def test_a_comment_is_written_again_when_a_requirement_changes_and_the_reason_stays():
    world = a_world_with_requirements(REVIEW)
    assert comments_after(world, Requirement(reason=Reason.WAITING_FOR_REVIEW, needed=2, given=1)) == [1]
    conversations = Requirement(reason=Reason.WAITING_FOR_CONVERSATIONS, needed=3)
    assert comments_after(world, Requirement(reason=Reason.WAITING_FOR_REVIEW, needed=2, given=1), conversations) == [1]
    assert world.submission(1).state == "not_ready"


def test_a_comment_is_not_written_again_when_only_what_is_met_changes():
    world = a_world_with_requirements(REVIEW)
    resolved = Requirement(reason=Reason.WAITING_FOR_CONVERSATIONS, given=1)
    assert comments_after(world, REVIEW, resolved) == []
