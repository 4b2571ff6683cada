"""Old news: a look that began before something newer was learned changes nothing, and is asked for again."""

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.ids import PrNumber
from tests.support.story import Story


def test_an_old_look_at_the_target_does_not_turn_it_back():
    story = Story(concurrency=1)
    story.submit(1)
    queue = story.queue
    old = story.world.host.perform(
        t.LookAtTarget(known_tip=queue.target.tip, removed=frozenset()), queue.counters.turns
    )
    story.tests_pass(1)
    merged = story.queue.target.tip
    story.world.tell(old)
    assert story.queue.target.tip == merged
    assert story.outstanding(t.LookAtTarget) == 1


def test_an_old_look_at_a_pull_request_does_not_cancel_its_new_stay():
    story = Story(concurrency=1)
    story.submit(1)
    old = e.PullSeen(pull=story.world.host.look(PrNumber(1)), as_of=story.queue.counters.turns)
    story.push(1)
    story.submit(1)
    story.world.tell(old)
    assert story.state(1) == "testing"
    assert story.outstanding(t.LookAtPull) == 1
