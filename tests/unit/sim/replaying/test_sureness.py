"""How sure a replay is: what makes it doubtful, and how much."""

from typing import Any

import pytest
from msgspec.structs import replace

from mergeyard.domain.instants import MINUTE
from mergeyard.sim.replaying.figures import Figures, Spread, spread
from mergeyard.sim.replaying.guesses import unknown
from mergeyard.sim.replaying.sureness import Findings, Sureness, doubts, own_error, verdict
from mergeyard.sim.replaying.truth import find_out
from tests.support.pasts_to_replay import a_past, green, merged

USUAL = Figures(
    merged=200,
    failed=20,
    left=5,
    median=30 * MINUTE,
    slow=90 * MINUTE,
    runs=300,
    runs_per_merge=1.5,
    spent=6000 * MINUTE,
)


def findings(*draws: Figures, **more: Any) -> Findings:
    history = a_past(merged(at=0, until=10), runs=[green(0, since=0, until=10)])
    truth = find_out(history)
    known: dict[str, Any] = {
        "history": history,
        "truth": truth,
        "unknown": unknown(history, truth, history.settings),
        "really": USUAL,
        "replayed": USUAL,
        "changed": spread(draws or [USUAL]),
        "new_runs": 0.0,
        "wishes": {"concurrency": 9},
    }
    return Findings(**known | more)


def sure(found: Findings) -> Sureness:
    return verdict(doubts(found))


def test_where_nothing_speaks_against_it_it_is_well_known():
    assert doubts(findings()) == []
    assert sure(findings()) is Sureness.WELL


@pytest.mark.parametrize(
    ("minutes", "known"), [((30, 37), Sureness.WELL), ((30, 45), Sureness.ROUGHLY), ((30, 65), Sureness.HARDLY)]
)
def test_the_more_hangs_on_accidents_the_less_is_known(minutes: tuple[int, int], known: Sureness):
    draws = [replace(USUAL, median=each * MINUTE) for each in minutes]
    assert sure(findings(*draws)) is known


def test_a_wide_draw_is_told_with_the_figure_that_it_is_wide_in():
    (doubt,) = doubts(findings(USUAL, replace(USUAL, runs=600)))
    assert doubt.words == "Small accidents change much here: drawn again and again, the number of runs differs by 50 %."


@pytest.mark.parametrize(("runs", "known"), [(320, Sureness.WELL), (350, Sureness.ROUGHLY), (400, Sureness.HARDLY)])
def test_the_farther_the_replay_is_from_what_was_the_less_is_known(runs: int, known: Sureness):
    assert sure(findings(replayed=replace(USUAL, runs=runs))) is known


def test_the_own_error_is_that_of_the_worst_figure():
    error, name = own_error(USUAL, replace(USUAL, median=33 * MINUTE, slow=120 * MINUTE))
    assert (round(error, 2), name) == (0.33, "the 95 % time to merge")


def test_what_came_to_no_end_says_nothing():
    assert sure(findings(changed=None)) is Sureness.HARDLY
    (doubt,) = doubts(findings(replayed=None))
    assert doubt.words.startswith("Even as it was")


def test_flakes_matter_where_most_runs_never_ran():
    flaky = replace(find_out(findings().history), flakes=0.06)
    assert sure(findings(truth=flaky, new_runs=0.4)) is Sureness.WELL
    assert sure(findings(truth=flaky, new_runs=0.6)) is Sureness.ROUGHLY


def test_the_gravest_doubt_comes_first():
    listed = doubts(findings(really=replace(USUAL, merged=50), replayed=replace(USUAL, runs=900, merged=50)))
    assert [doubt.sureness for doubt in listed] == [Sureness.HARDLY, Sureness.ROUGHLY]


def test_a_spread_is_chosen_figure_by_figure():
    quick, slow = replace(USUAL, median=20 * MINUTE, runs=400), replace(USUAL, median=40 * MINUTE, runs=200)
    assert spread([quick, USUAL, slow]) == Spread(
        USUAL, replace(USUAL, median=20 * MINUTE, runs=200), replace(USUAL, median=40 * MINUTE, runs=400)
    )
    assert spread([replace(USUAL, median=None), USUAL]).most.median is None
