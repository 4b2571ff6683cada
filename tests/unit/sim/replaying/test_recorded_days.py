"""Days that the race itself produced, recorded as a store keeps them: replayed, and held against what really comes."""

import pytest

from mergeyard.domain.config import Config, Mode, OptimizationMode, Speculation
from mergeyard.sim.racing.trace import Trace, draw
from mergeyard.sim.racing.workload import Workload
from mergeyard.sim.replaying import figures
from mergeyard.sim.replaying.figures import Figures
from mergeyard.sim.replaying.replay import Replay
from mergeyard.sim.replaying.replayable import replayed
from mergeyard.sim.replaying.truth import find_out
from mergeyard.sim.replaying.whatif import Question, answer
from tests.support.replaying import recorded

SETTINGS = {
    "chain": Config(),
    "lanes": Config(mode=Mode.PARALLEL),
    "batches": Config(batch=True),
    "retries": Config(test_retries=1),
    "patience": Config(can_optimistically_merge=True, pending_failure_depth=2),
    "bets": Config(mode=Mode.PARALLEL, speculation=Speculation.BEST_FIRST, can_optimistically_merge=True),
    "lanes of batches": Config(
        mode=Mode.PARALLEL,
        batch=True,
        batching_max_wait_time_minutes=20,
        optimization_mode=OptimizationMode.BISECTION_SKIP_REDUNDANT_TESTS,
    ),
}
every_setting = pytest.mark.parametrize("config", SETTINGS.values(), ids=SETTINGS.keys())
every_seed = pytest.mark.parametrize("seed", [1, 2])


def a_day(seed: int, *, flakes: float = 0, parts: int = 2) -> Trace:
    return draw(Workload(rate=8, hours=6, workers=1000, parts=parts, conflict=0.03, flakes=flakes), seed)


@every_setting
@every_seed
def test_under_its_own_settings_a_day_is_replayed_to_the_millisecond(config: Config, seed: int):
    history = recorded(a_day(seed), config).history()
    replay = Replay(history, find_out(history), history.settings).run()
    assert {place: (each.end, each.ended_at) for place, each in replay.outcomes.items()} == {
        place: (each.end, each.ended_at) for place, each in enumerate(history.arrivals)
    }
    assert figures.replayed(history, replay) == figures.really(history)


@every_setting
def test_where_one_run_in_twenty_flakes_it_is_replayed_within_a_tenth(config: Config):
    """A flake may make one look as if it broke with another: then a few end otherwise."""
    history = recorded(a_day(1, flakes=0.05), config).history()
    replay = Replay(history, find_out(history), history.settings).run()
    assert apart(figures.replayed(history, replay), figures.really(history)) < 0.1


@pytest.mark.parametrize(
    ("wishes", "within"),
    [
        ({"concurrency": 20}, 0.05),
        ({"concurrency": 2}, 0.05),
        ({"test_retries": 1}, 0.05),
        ({"speculation": "best_first", "concurrency": 10}, 0.25),
    ],
    ids=str,
)
@every_seed
def test_what_is_foretold_is_what_really_comes(wishes: dict[str, object], within: float, seed: int):
    """Bets rest on results that no chain ever asked for, so they are foretold less exactly."""
    trace = a_day(seed, parts=1)
    told = answer(Question(recorded(trace, Config()).history(), wishes))
    assert told.changed is not None
    really = figures.really(recorded(trace, replayed(Config(), wishes)).history())
    assert apart(told.changed.middle, really) < within


def apart(found: Figures, really: Figures) -> float:
    """By which share the two differ, in the figure in which they do so most."""
    pairs = [
        (found.merged, really.merged),
        (found.median or 0, really.median or 0),
        (found.slow or 0, really.slow or 0),
        (found.runs, really.runs),
        (found.spent, really.spent),
    ]
    return max(abs(one - other) / other for one, other in pairs)
