"""What settings were is read back from what the journal tells of their changes."""

from itertools import pairwise

from msgspec.structs import fields

from mergeyard.domain.config import Config, Mode, OptimizationMode, differences
from mergeyard.domain.instants import Instant
from mergeyard.domain.journal import QueueChanged
from mergeyard.domain.reasons import Reason
from mergeyard.domain.states import QueueState
from mergeyard.service.replaying.past_settings import read_back
from mergeyard.sim.replaying.history import Setting
from mergeyard.sim.replaying.replayable import REPLAYABLE

SINCE = Instant(0)


def a_change(at: int, words: str, reason: Reason = Reason.SETTINGS_CHANGED) -> QueueChanged:
    return QueueChanged(at=Instant(at), source=QueueState.RUNNING, to=QueueState.RUNNING, reason=reason, words=words)


def changed(*configs: Config) -> list[QueueChanged]:
    """From each to the next, the latest first, in the journal's own words."""
    return [a_change(at, differences(*step)) for at, step in enumerate(pairwise(configs), 1)][::-1]


def test_without_a_change_they_were_what_they_are():
    assert read_back(Config(concurrency=7), [], SINCE).settings == (Setting(SINCE, Config(concurrency=7)),)


def test_every_change_is_taken_back_in_turn():
    first = Config(concurrency=3, optimization_mode=OptimizationMode.BISECTION_SKIP_REDUNDANT_TESTS)
    then = Config(concurrency=5, batch=True, mode=Mode.PARALLEL)
    last = Config(concurrency=9, batch=False, mode=Mode.PARALLEL, batching_max_wait_time_minutes=0)
    past = read_back(last, changed(first, then, last), SINCE)
    assert past.settings == (Setting(SINCE, first), Setting(Instant(1), then), Setting(Instant(2), last))
    assert past.unread == 0


def test_what_others_wrote_into_a_setting_is_not_taken_for_another_one():
    before = Config(enqueueing_label="old", concurrency=4)
    now = Config(enqueueing_label="x, batch yes → no, concurrency 9 → 8", concurrency=6, required_statuses=("a b", "c"))
    past = read_back(now, changed(before, now), SINCE)
    assert (past.settings[0].config.concurrency, past.settings[0].config.batch, past.unread) == (4, False, 0)


def test_what_can_be_replayed_stands_before_what_others_may_write():
    assert tuple(field.name for field in fields(Config))[: len(REPLAYABLE)] == REPLAYABLE


def test_a_change_that_does_not_lead_to_what_came_after_it_is_not_believed():
    past = read_back(Config(concurrency=5), [a_change(3, "concurrency 2 → 4")], SINCE)
    assert past.settings == (Setting(SINCE, Config()), Setting(Instant(3), Config()))
    assert past.unread == 1


def test_a_value_that_no_setting_has_is_not_believed():
    assert read_back(Config(), [a_change(3, "concurrency 0 → 5")], SINCE).unread == 1
    assert read_back(Config(), [a_change(3, "mode sideways → single")], SINCE).unread == 1


def test_what_is_no_change_of_settings_is_passed_over():
    paused = a_change(3, "concurrency 2 → 5", Reason.STATE_REQUESTED)
    assert read_back(Config(), [paused], SINCE).settings == (Setting(SINCE, Config()),)
