"""The settings of a queue in the past are reconstructed from its journal."""

from itertools import pairwise

from msgspec.structs import fields

from mergeyard.domain.config import Config, Mode, OptimizationMode, describe_changes
from mergeyard.domain.journal import QueueChanged
from mergeyard.domain.states import QueueState, Reason
from mergeyard.domain.timestamps import Instant
from mergeyard.service.whatif import reconstruct_settings
from mergeyard.simulation.history import REPLAYABLE_SETTINGS, ConfigChange

SINCE = Instant(0)


def a_change(at: int, detail: str, reason: Reason = Reason.SETTINGS_CHANGED) -> QueueChanged:
    return QueueChanged(at=Instant(at), source=QueueState.RUNNING, to=QueueState.RUNNING, reason=reason, detail=detail)


def journal_of(*configs: Config) -> list[QueueChanged]:
    """The journal entries for these changes, latest first."""
    return [a_change(at, describe_changes(*pair)) for at, pair in enumerate(pairwise(configs), 1)][::-1]


def test_without_a_change_the_settings_were_the_current_ones():
    assert reconstruct_settings(Config(concurrency=7), [], SINCE).settings == (
        ConfigChange(SINCE, Config(concurrency=7)),
    )


def test_every_change_is_reverted_in_order():
    first = Config(concurrency=3, optimization_mode=OptimizationMode.BISECTION_SKIP_REDUNDANT_TESTS)
    then = Config(concurrency=5, batch=True, mode=Mode.PARALLEL)
    last = Config(concurrency=9, batch=False, mode=Mode.PARALLEL, batching_max_wait_time_minutes=0)
    history = reconstruct_settings(last, journal_of(first, then, last), SINCE)
    assert history.settings == (
        ConfigChange(SINCE, first),
        ConfigChange(Instant(1), then),
        ConfigChange(Instant(2), last),
    )
    assert history.unreadable_changes == 0


def test_text_in_a_setting_is_not_parsed_as_another_setting():
    before = Config(enqueueing_label="old", concurrency=4)
    now = Config(enqueueing_label="x, batch yes → no, concurrency 9 → 8", concurrency=6, required_statuses=("a b", "c"))
    history = reconstruct_settings(now, journal_of(before, now), SINCE)
    assert (history.settings[0].config.concurrency, history.settings[0].config.batch, history.unreadable_changes) == (
        4,
        False,
        0,
    )


def test_replayable_settings_come_before_settings_with_free_text():
    assert tuple(field.name for field in fields(Config))[: len(REPLAYABLE_SETTINGS)] == REPLAYABLE_SETTINGS


def test_a_change_that_contradicts_the_next_one_is_ignored():
    history = reconstruct_settings(Config(concurrency=5), [a_change(3, "concurrency 2 → 4")], SINCE)
    assert history.settings == (ConfigChange(SINCE, Config()), ConfigChange(Instant(3), Config()))
    assert history.unreadable_changes == 1


def test_a_change_with_an_invalid_value_is_ignored():
    assert reconstruct_settings(Config(), [a_change(3, "concurrency 0 → 5")], SINCE).unreadable_changes == 1
    assert reconstruct_settings(Config(), [a_change(3, "mode sideways → single")], SINCE).unreadable_changes == 1


def test_other_journal_entries_are_ignored():
    paused = a_change(3, "concurrency 2 → 5", Reason.STATE_REQUESTED)
    assert reconstruct_settings(Config(), [paused], SINCE).settings == (ConfigChange(SINCE, Config()),)
