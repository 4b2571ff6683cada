"""An action's price: the running test runs that it stops, and the pull requests that are tested again."""

import pytest

from mergeyard.domain.config import URGENT
from mergeyard.domain.ids import PullRequestNumber
from mergeyard.domain.timestamps import MINUTE
from mergeyard.service.previews import Action, ActionPreview, preview_action
from tests.support.builders import QueueWorld, a_world


def a_busy_world() -> QueueWorld:
    """Three pull requests under test, each for five minutes, and a fourth that waits."""
    world = a_world(prs=4, concurrency=3)
    world.advance_time(5 * MINUTE)
    return world


def preview(world: QueueWorld, number: int, action: Action, priority: int | None = None) -> ActionPreview:
    return preview_action(world.queue, PullRequestNumber(number), action, priority, world.now)


@pytest.mark.parametrize("action", [Action.PRIORITY, Action.SUBMIT])
def test_urgent_names_every_run_that_it_stops_and_the_time_that_is_lost(action: Action):
    price = preview(a_busy_world(), 4, action, URGENT)
    assert [each.numbers for each in price.stopped] == [(1,), (2,), (3,)]
    assert price.elapsed_ms == 15 * MINUTE
    assert price.delayed == (1, 2, 3)


def test_submitting_an_unknown_pull_request_as_urgent_has_the_same_price():
    assert len(preview(a_busy_world(), 9, Action.SUBMIT, URGENT).stopped) == 3


def test_a_restart_stops_only_its_own_run():
    price = preview(a_busy_world(), 2, Action.RESTART)
    assert ([each.numbers for each in price.stopped], price.delayed) == ([(2,)], ())


def test_removing_a_pull_request_stops_the_runs_on_top_of_it():
    price = preview(a_busy_world(), 2, Action.CANCEL)
    assert ([each.numbers for each in price.stopped], price.delayed) == ([(2,), (3,)], (3,))


@pytest.mark.parametrize(("action", "priority"), [(Action.CANCEL, None), (Action.PRIORITY, 10), (Action.SUBMIT, None)])
def test_what_waits_costs_nothing(action: Action, priority: int | None):
    assert preview(a_busy_world(), 4, action, priority) == ActionPreview()


def test_a_preview_changes_nothing():
    world = a_busy_world()
    before = world.queue
    preview(world, 4, Action.PRIORITY, URGENT)
    assert world.queue is before
