"""The checklist of what a pull request needs, and what to do about it."""

import pytest
from msgspec.structs import replace

from mergeyard.domain.config import Mode
from mergeyard.domain.states import Mergeability, PrState, QueueState
from mergeyard.domain.targets import named
from mergeyard.service.views import PullView, view
from mergeyard.web.pulls.readiness import Item, Mark, checklist
from tests.support.builders import a_config, a_plain_queue, a_yard


def seen(*, mode: Mode = Mode.SINGLE, **changes: object) -> PullView:
    """A pull request that was submitted and lacks nothing but what is said."""
    stay = a_yard(prs=1).stay(1)
    stay = replace(stay, **{name: value for name, value in changes.items() if name in stay.__struct_fields__})
    pull = {name: value for name, value in changes.items() if name in stay.pull.__struct_fields__}
    stay = replace(stay, state=PrState.NOT_READY, pull=replace(stay.pull, **pull))
    return view(a_plain_queue(config=a_config(mode=mode)), stay, stay.submitted_at)


def missing(shown: PullView, state: QueueState = QueueState.RUNNING) -> list[Item]:
    return [item for item in checklist(shown, state) if item.mark is not Mark.MET]


def test_one_that_lacks_nothing_has_everything_ticked():
    assert [item.words for item in checklist(seen(), QueueState.RUNNING)] == [
        "Points at main",
        "Is no draft",
        "Can be merged",
        "The queue is open",
    ]
    assert missing(seen()) == []


def test_whatever_is_missing_says_what_to_do():
    (base, draft, merge, doors) = missing(
        seen(base="next", draft=True, mergeability=Mergeability.NOT_MERGEABLE), QueueState.PAUSED
    )
    assert "Change its base branch to main" in base.advice
    assert draft.advice == "Mark it as ready for review."
    assert "conflicts" in merge.advice
    assert "resume" in doors.advice


def test_what_only_time_can_tell_asks_nothing_of_anybody():
    (unknown,) = missing(seen(mergeability=Mergeability.UNKNOWN))
    assert unknown.mark is Mark.AWAITED
    assert "nothing to do" in unknown.advice


def test_one_that_was_forced_need_not_be_called_mergeable():
    assert missing(seen(mergeability=Mergeability.NOT_MERGEABLE, forced=True)) == []


def test_a_fork_that_changes_guarded_paths_needs_a_maintainer():
    (guarded,) = missing(seen(fork=True, guarded=("ci.yml",)))
    assert guarded.words == "Changes guarded paths"
    assert "ci.yml" in guarded.advice
    assert missing(seen(fork=True, guarded=("ci.yml",), by_maintainer=True)) == []
    assert missing(seen(fork=True, guarded=())) == []


def test_targets_are_needed_only_where_there_are_lanes():
    (targets,) = missing(seen(mode=Mode.PARALLEL, targets=None))
    assert "Upload them" in targets.advice
    assert missing(seen(mode=Mode.PARALLEL, targets=named("x"))) == []
    assert missing(seen(targets=None)) == []


def test_one_that_came_in_before_there_were_lanes_needs_no_targets():
    admitted = seen(mode=Mode.PARALLEL, targets=None)
    assert missing(replace(admitted, stay=replace(admitted.stay, state=PrState.TESTING))) == []


@pytest.mark.parametrize("state", QueueState)
def test_every_state_of_the_queue_is_explained(state: QueueState):
    assert checklist(seen(), state)[-1].words.startswith("The queue ")
