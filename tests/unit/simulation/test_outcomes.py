"""The outcome model of a replay: recorded runs keep their results, all others are derived or drawn."""

from msgspec.structs import replace

from mergeyard.domain.ids import PullRequestNumber, Sha
from mergeyard.domain.timestamps import MINUTE
from mergeyard.simulation.history import History
from mergeyard.simulation.outcomes import FailureRules, attribute_failures, build_outcome_model
from tests.support.replay_histories import (
    a_history,
    cancelled_run,
    failed_arrival,
    failed_run,
    merged_arrival,
    passed_run,
    removed_arrival,
)


def test_a_recorded_run_has_its_recorded_duration_and_result_at_each_attempt():
    history = a_history(
        merged_arrival(at=0, until=30), runs=[failed_run(0, since=0, until=10), passed_run(0, since=10, until=30)]
    )
    model = build_outcome_model(history)
    assert [model.duration_ms((0,), 1, attempt) / MINUTE for attempt in range(2)] == [10, 20]
    assert [model.passes((0,), 1, attempt, by_rule=True) for attempt in range(2)] == [False, True]
    assert [model.is_recorded((0,), 1, attempt) for attempt in range(3)] == [True, True, False]


def test_a_cancelled_run_would_have_taken_longer():
    history = a_history(
        merged_arrival(at=0, until=30),
        runs=[
            passed_run(0, since=0, until=30),
            cancelled_run(0, since=30, until=50),
            cancelled_run(0, since=50, until=90),
        ],
    )
    lengths = [build_outcome_model(history).duration_ms((0,), 1, attempt) for attempt in (1, 2)]
    assert lengths == [30 * MINUTE, 40 * MINUTE + 1]


def test_durations_come_from_failed_runs_for_bad_and_from_passed_runs_for_good_arrivals():
    history = a_history(
        failed_arrival(at=0, until=5),
        merged_arrival(at=0, until=65),
        runs=[failed_run(0, since=0, until=5), failed_run(1, since=5, until=6), passed_run(1, since=6, until=26)],
    )
    assert [length / MINUTE for length in build_outcome_model(history).durations.by_arrival] == [5, 20]


def test_an_own_run_determines_the_duration_rather_than_a_shared_one():
    history = a_history(
        merged_arrival(at=0, until=40),
        merged_arrival(at=0, until=40),
        runs=[passed_run(0, 1, since=0, until=30, tests=2), passed_run(0, since=30, until=40)],
    )
    assert [length / MINUTE for length in build_outcome_model(history).durations.by_arrival] == [10, 30]


def test_without_a_finished_run_the_duration_is_the_usual_one_or_twice_the_elapsed_time():
    history = a_history(
        merged_arrival(at=0, until=10),
        removed_arrival(at=0, until=5),
        removed_arrival(at=0, until=30),
        runs=[
            passed_run(0, since=0, until=10),
            cancelled_run(1, since=0, until=5),
            cancelled_run(2, since=0, until=30),
        ],
    )
    lengths = build_outcome_model(history).durations
    assert [length / MINUTE for length in lengths.by_arrival] == [10, 10, 60]
    assert lengths.unknown == {1, 2}


def test_an_arrival_that_left_before_a_result_counts_as_good():
    history = a_history(
        removed_arrival(at=0, until=5),
        removed_arrival(at=0, until=30),
        runs=[passed_run(1, since=0, until=30)],
    )
    model = build_outcome_model(history)
    assert model.undetermined == {0}
    assert not model.rules.bad


def test_runs_flake_at_the_recorded_rate_and_differ_between_draws():
    history = a_history(
        merged_arrival(at=0, until=40),
        runs=[
            failed_run(0, since=0, until=10),
            passed_run(0, since=10, until=20),
            *(passed_run(0, since=20, until=30) for _ in range(8)),
        ],
    )
    model = build_outcome_model(history)
    assert model.flake_rate == 0.1
    never_ran = [(index, index + 1) for index in range(2000)]
    drawn = [
        {stack for stack in never_ran if not replace(model, draw=draw).passes(stack, 1, 0, by_rule=True)}
        for draw in (0, 1)
    ]
    assert all(150 < len(failed_runs) < 250 for failed_runs in drawn)
    assert drawn[0] != drawn[1]


def test_a_run_that_fails_by_rule_never_passes():
    model = build_outcome_model(a_history(merged_arrival(at=0, until=10), runs=[passed_run(0, since=0, until=10)]))
    assert not model.passes((3,), 1, 0, by_rule=False)


def test_durations_of_unrecorded_runs_differ_between_draws():
    model = build_outcome_model(a_history(merged_arrival(at=0, until=10), runs=[passed_run(0, since=0, until=10)]))
    again = replace(model, draw=1)
    assert again.duration_ms((0,), 1, 0) == 10 * MINUTE
    assert model.duration_ms((0,), 1, 1) == 10 * MINUTE
    assert 9.5 * MINUTE <= again.duration_ms((0,), 1, 1) <= 10.5 * MINUTE
    assert again.duration_ms((0,), 1, 1) != 10 * MINUTE


def test_an_arrival_that_failed_and_never_passed_is_bad():
    history = a_history(
        merged_arrival(at=0, until=10),
        failed_arrival(at=0, until=10),
        runs=[passed_run(0, since=0, until=10), failed_run(0, 1, since=0, until=10)],
    )
    assert attribute_failures(history) == FailureRules(bad=frozenset({1}))


def test_an_arrival_that_fails_only_with_another_conflicts_with_it():
    history = a_history(
        merged_arrival(at=0, until=10),
        failed_arrival(at=0, until=20),
        runs=[passed_run(0, since=0, until=10), passed_run(1, since=0, until=10), failed_run(0, 1, since=0, until=20)],
    )
    found = attribute_failures(history)
    assert found == FailureRules(conflicts={0: frozenset({1}), 1: frozenset({0})})
    assert not found.ambiguous


def test_an_arrival_can_conflict_with_one_that_merged_after_it_passed():
    history = a_history(
        merged_arrival(at=0, until=30),
        failed_arrival(at=0, until=50),
        runs=[passed_run(1, since=0, until=10), passed_run(0, since=20, until=30), failed_run(1, since=40, until=50)],
    )
    assert attribute_failures(history).conflicts == {0: frozenset({1}), 1: frozenset({0})}


def conflict_with_one_of_two() -> History:
    return a_history(
        merged_arrival(at=0, until=10),
        merged_arrival(at=0, until=10),
        failed_arrival(at=0, until=20),
        runs=[
            passed_run(0, since=0, until=10),
            passed_run(0, 1, since=0, until=10),
            passed_run(2, since=0, until=10),
            failed_run(0, 1, 2, since=0, until=20),
        ],
    )


def test_of_several_possible_conflicts_the_last_is_chosen_and_marked_as_ambiguous():
    found = attribute_failures(conflict_with_one_of_two())
    assert found.conflicts == {1: frozenset({2}), 2: frozenset({1})}
    assert found.ambiguous == {2}


def test_another_failed_run_resolves_an_ambiguous_conflict():
    history, decisive = conflict_with_one_of_two(), failed_run(0, 2, since=0, until=20)
    for runs in ([decisive, *history.runs], [*history.runs, decisive]):
        found = attribute_failures(a_history(*history.arrivals, runs=runs))
        assert found.conflicts == {0: frozenset({2}), 2: frozenset({0})}
        assert not found.ambiguous


def test_a_failed_and_a_passed_run_of_the_same_stack_are_a_flake():
    history = a_history(
        failed_arrival(at=0, until=20), runs=[passed_run(0, since=0, until=10), failed_run(0, since=10, until=20)]
    )
    assert attribute_failures(history) == FailureRules()


def test_a_head_that_merged_later_was_not_bad():
    same = {"number": PullRequestNumber(4), "head": Sha("the same")}
    history = a_history(
        failed_arrival(at=0, until=10, **same),
        merged_arrival(at=20, until=30, **same),
        runs=[failed_run(0, since=0, until=10), passed_run(1, since=20, until=30)],
    )
    assert attribute_failures(history) == FailureRules()


def test_an_arrival_that_left_is_bad_if_a_failed_run_has_no_other_cause():
    history = a_history(
        removed_arrival(at=0, until=20),
        removed_arrival(at=0, until=20),
        removed_arrival(at=0, until=20),
        runs=[failed_run(0, since=0, until=10), failed_run(1, 2, since=0, until=10)],
    )
    assert attribute_failures(history) == FailureRules(bad=frozenset({0}))


def test_a_failed_run_on_a_broken_base_blames_no_arrival():
    history = a_history(
        removed_arrival(at=0, until=20),
        runs=[failed_run(0, since=0, until=10), failed_run(since=10, until=20, tests=0)],
    )
    assert attribute_failures(history) == FailureRules()
