"""The graph of a queue: its lanes, batches, bisections and target branch."""

from itertools import pairwise

import pytest
from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain.ids import BatchId
from mergeyard.domain.pull_requests import ALL_TARGETS, impacted_targets_from_names
from mergeyard.domain.queue import LandingPhase
from mergeyard.domain.states import REASON_MESSAGES, CheckState, QueueState, Reason
from mergeyard.domain.timestamps import MINUTE, later
from mergeyard.web.queue_graph import (
    MAX_BATCHES,
    MAX_PULL_REQUESTS_PER_BATCH,
    SWITCH_PATHS,
    BatchMark,
    BatchView,
    BisectionView,
    GridCell,
    MemberRole,
    QueueGraph,
    build_bisection,
    build_queue_graph,
    estimate_rounds,
    lay_out_lanes,
)
from tests.support.builders import QueueWorld, a_parallel_world, a_world


def graph_of(world: QueueWorld) -> QueueGraph:
    return build_queue_graph(world.queue, world.now)


def batches_of(world: QueueWorld) -> list[BatchView]:
    return list(graph_of(world).batches.values())


def marks_of(world: QueueWorld) -> list[BatchMark]:
    return [batch.mark for batch in batches_of(world)]


def test_an_empty_queue_shows_only_the_target_branch():
    graph = graph_of(a_world())
    assert (graph.target_branch.name, graph.lanes, graph.batches, graph.has_lanes) == ("main", [], {}, False)


def test_a_batch_shows_its_pull_requests():
    (batch,) = batches_of(a_world(prs=2, batch=2))
    assert ([submission.number for submission in batch.submissions], batch.mark, batch.position) == (
        [1, 2],
        BatchMark.TESTING,
        1,
    )


def test_a_batch_whose_run_is_being_built_is_not_testing_yet():
    world = a_world()
    world.submit(1)
    assert marks_of(world) == [BatchMark.BUILDING]


def test_a_batch_shows_its_result():
    world = a_world(prs=3)
    world.passes(2)
    world.fails(3)
    assert marks_of(world) == [BatchMark.TESTING, BatchMark.PASSED, BatchMark.FAILING]


def test_a_batch_that_a_passed_run_behind_it_contains_is_cleared():
    world = a_world(prs=2, depth=1)
    world.apply(e.StateRequested(state=QueueState.PAUSED))
    world.passes(2)
    assert marks_of(world) == [BatchMark.CLEARED, BatchMark.PASSED]


def test_a_restarted_batch_waits_and_shows_no_old_run():
    world = a_world(prs=1)
    world.apply(e.StateRequested(state=QueueState.PAUSED))
    world.restart(1)
    (batch,) = batches_of(world)
    assert (batch.mark, batch.progress) == (BatchMark.WAITING, None)


def test_a_landing_batch_is_shown_at_the_target_branch():
    world = a_world(prs=2)
    world.passes(1)
    world.save_landing_intent()
    target_branch = graph_of(world).target_branch
    assert marks_of(world)[0] is BatchMark.LANDING
    assert (target_branch.landing, target_branch.phase) == ((1,), LandingPhase.INTENDED)


def test_an_urgent_batch_is_marked():
    world = a_world(prs=1)
    world.submit(2, priority=0)
    assert [batch.urgent for batch in batches_of(world)] == [True, False]


def test_a_base_run_is_shown_at_the_target_branch():
    world = a_world(prs=1, base_passed=False)
    assert graph_of(world).target_branch.progress is None
    world.fails(1)
    world.build()
    assert graph_of(world).target_branch.progress is not None


def test_a_target_branch_that_fails_its_base_run_is_broken():
    world = a_world(prs=1, base_passed=False)
    world.fails(1)
    world.build()
    world.fails()
    assert graph_of(world).target_branch.is_broken


def test_in_single_mode_there_is_one_lane_and_no_batch_lists_dependencies():
    graph = graph_of(a_world(prs=4))
    assert [[cell.batch for cell in lane] for lane in graph.lanes] == [list(graph.batches)]
    assert all(not batch.dependencies for batch in graph.batches.values())


def causes_of(world: QueueWorld, index: int = 1) -> list[str]:
    return [dependency.impacts_all for dependency in batches_of(world)[index].dependencies]


def test_in_parallel_mode_a_batch_lists_the_targets_it_shares_with_batches_ahead():
    world = a_parallel_world("x", "y", "xy")
    third = batches_of(world)[2]
    assert [(each.numbers, each.shared_targets.names) for each in third.dependencies] == [([1], ("x",)), ([2], ("y",))]
    assert causes_of(world, 2) == ["", ""]
    assert graph_of(world).has_lanes


def test_a_batch_lists_only_the_batches_directly_ahead():
    third = batches_of(a_parallel_world("x", "x", "x"))[2]
    assert [dependency.numbers for dependency in third.dependencies] == [[2]]


def test_a_dependency_says_which_of_the_two_impacts_all_targets():
    world = a_parallel_world("x")
    world.submit(2, impacted_targets=ALL_TARGETS)
    assert causes_of(world) == ["this pull request impacts all targets"]
    world.submit(3, impacted_targets=ALL_TARGETS)
    assert causes_of(world, 2) == ["both impact all targets"]
    world.submit(4, impacted_targets=impacted_targets_from_names("y"))
    assert causes_of(world, 3) == ["#3 impacts all targets"]


def test_a_dependency_of_a_batch_of_several_speaks_of_the_batch():
    world = a_parallel_world(batch=2)
    world.submit(1, 2, impacted_targets=impacted_targets_from_names("x"))
    world.submit(3, 4, impacted_targets=ALL_TARGETS)
    world.submit(5, 6, impacted_targets=impacted_targets_from_names("x"))
    assert causes_of(world) == ["this batch impacts all targets"]
    assert causes_of(world, 2) == ["that batch impacts all targets"]


def test_a_dependency_on_a_contained_pull_request_says_so_and_names_no_targets():
    world = a_parallel_world("x")
    world.submit(2, stacked_on=1, impacted_targets=impacted_targets_from_names("y"))
    (dependency,) = batches_of(world)[1].dependencies
    assert (dependency.contains_commits, dependency.impacts_all, dependency.shared_targets.names) == (True, "", ())


def test_many_shared_targets_are_shortened_to_the_first_and_a_count():
    world = a_parallel_world("abcdef", "abcdef")
    (dependency,) = batches_of(world)[1].dependencies
    assert (dependency.shared_targets.names, dependency.shared_targets.more) == (("a", "b", "c"), 3)


def test_positions_count_pull_requests_and_not_batches():
    first, second = batches_of(a_world(prs=6, batch=3))
    assert (first.first_position, first.last_position) == (1, 3)
    assert (second.first_position, second.last_position) == (4, 6)


def test_a_waiting_batch_gives_the_true_reason():
    world = a_world(prs=1)
    world.apply(e.StateRequested(state=QueueState.PAUSED))
    world.restart(1)
    (batch,) = batches_of(world)
    assert batch.reason == REASON_MESSAGES[Reason.QUEUE_PAUSED]


def test_a_failing_batch_says_what_decides_about_it():
    world = a_world(prs=2)
    world.fails(2)
    testing, failing = batches_of(world)
    assert (testing.reason, failing.reason) == ("", REASON_MESSAGES[Reason.WAITING_FOR_PRS_AHEAD])


def test_a_large_batch_is_shortened_to_the_first_pull_requests_and_a_count():
    (batch,) = batches_of(a_world(prs=MAX_PULL_REQUESTS_PER_BATCH + 3, batch=MAX_PULL_REQUESTS_PER_BATCH + 3))
    assert (len(batch.submissions), batch.more) == (MAX_PULL_REQUESTS_PER_BATCH, 3)


@pytest.mark.parametrize("world", [a_world(prs=0), a_parallel_world()], ids=["single", "parallel"])
def test_many_batches_are_shortened_to_the_first_and_a_count(world: QueueWorld):
    world.apply(e.SettingsSaved(config=replace(world.queue.config, concurrency=MAX_BATCHES + 2)))
    world.submit(*range(1, MAX_BATCHES + 3), impacted_targets=impacted_targets_from_names("x"))
    graph = graph_of(world)
    assert (len(graph.batches), graph.hidden_count) == (MAX_BATCHES, 2)


def test_a_batch_shows_how_many_checks_of_its_run_are_done():
    world = a_world(prs=1)
    run = world.run_of(1)
    world.queue = replace(
        world.queue, runs={run.id: replace(run, required_statuses=("unit", "lint"), checks={"lint": CheckState.PASSED})}
    )
    (batch,) = batches_of(world)
    assert batch.progress is not None
    assert (batch.progress.done, len(batch.progress.checks)) == (1, 2)
    assert batch.progress.checks == [CheckState.PENDING, CheckState.PASSED]


def lanes(stacked_on: dict[int, list[int]]) -> list[list[GridCell]]:
    ahead = {BatchId(batch): [BatchId(other) for other in others] for batch, others in stacked_on.items()}
    return lay_out_lanes(list(ahead), ahead)


def batch_ids(grid: list[list[GridCell]]) -> list[list[int | None]]:
    return [[cell.batch for cell in lane] for lane in grid]


def test_without_a_batch_there_is_no_lane():
    assert lanes({}) == []


def test_a_batch_stacked_on_another_is_behind_it_in_the_same_lane():
    grid = lanes({1: [], 2: [1], 3: [2]})
    assert batch_ids(grid) == [[1, 2, 3]]
    assert all(cell.lead and cell.rail and not cell.switches for cell in grid[0])


def test_batches_without_batches_ahead_have_a_lane_each_from_the_target_branch():
    grid = lanes({1: [], 2: []})
    assert batch_ids(grid) == [[1], [2]]
    assert [lane[0].lead for lane in grid] == [True, True]


def test_a_second_batch_on_the_same_one_starts_a_lane_behind_a_switch():
    grid = lanes({1: [], 2: [1], 3: [1]})
    assert batch_ids(grid) == [[1, 2], [None, 3]]
    assert (grid[1][1].switches, grid[1][1].lead, grid[1][0].rail) == (("down",), False, False)


def test_a_switch_over_several_lanes_has_a_piece_in_each():
    grid = lanes({1: [], 2: [1], 3: [], 4: [], 5: [1]})
    assert [lane[1].switches for lane in grid] == [(), ("down-begins",), ("through",), ("down-ends",)]


def test_a_batch_that_joins_two_lanes_is_in_one_and_has_a_switch_from_the_other():
    grid = lanes({1: [], 2: [], 3: [1, 2]})
    assert batch_ids(grid) == [[1, 3], [2, None]]
    assert grid[0][1].lead
    assert grid[1][1].switches == ("up",)


def test_a_rail_passes_empty_cells_up_to_the_column_of_its_switch():
    grid = lanes({1: [], 2: [1], 3: [], 4: [2, 3]})
    assert batch_ids(grid) == [[1, 2, 4], [3, None, None]]
    assert (grid[1][1].rail, grid[1][1].lead, grid[1][2].switches) == (True, True, ("up",))


def test_a_rail_whose_own_lane_is_occupied_uses_the_other():
    grid = lanes({1: [], 2: [1], 3: [2], 4: [1, 2]})
    assert batch_ids(grid) == [[1, 2, 3], [None, None, 4]]
    assert (grid[1][1].switches, grid[1][1].rail, grid[1][1].lead) == (("down",), True, False)
    assert (grid[1][2].lead, grid[1][2].switches) == (True, ("down",))


def test_a_rail_for_which_both_lanes_are_occupied_gets_its_own_lane():
    grid = lanes({1: [], 2: [1], 3: [], 4: [3], 5: [4, 1]})
    assert batch_ids(grid) == [[1, 2, None], [3, 4, 5], [None, None, None]]
    assert [cell.rail for cell in grid[2]] == [False, True, False]
    assert [lane[1].switches for lane in grid] == [(), ("down-begins",), ("down-ends",)]
    assert grid[2][2].switches == ("up",)


def test_every_batch_is_reached_by_a_rail():
    grid = lanes({1: [], 2: [1], 3: [], 4: [3, 1], 5: [2, 4], 6: [1], 7: [6, 3]})
    for lane, lane_below in pairwise([*grid, [GridCell() for _ in grid[0]]]):
        for cell, cell_below in zip(lane, lane_below, strict=True):
            from_above = {"down", "down-ends"}.intersection(cell.switches)
            from_below = {"up", "up-ends"}.intersection(cell_below.switches)
            assert cell.batch is None or cell.lead or from_above or from_below


def test_every_switch_piece_has_a_path():
    grid = lanes({1: [], 2: [], 3: [], 4: [1, 3], 5: [3], 6: [1]})
    paths = [path for lane in grid for cell in lane for path in cell.paths]
    assert set(paths) <= set(SWITCH_PATHS.values())
    assert len(paths) == sum(len(cell.switches) for lane in grid for cell in lane) > 0


def bisection_of(world: QueueWorld) -> BisectionView:
    (bisection,) = build_queue_graph(world.queue, world.now).bisections
    return bisection


def a_failed_batch() -> QueueWorld:
    world = a_world(prs=4, batch=4, bisection_concurrency=1)
    world.fails(1, 2, 3, 4)
    world.build()
    return world


def test_a_failed_batch_is_shown_as_a_bisection_whose_prefix_is_tested():
    bisection = bisection_of(a_failed_batch())
    assert [member.number for member in bisection.members] == [1, 2, 3, 4]
    assert {member.role for member in bisection.members} == {MemberRole.CANDIDATE}
    assert [(probe.start, probe.length) for probe in bisection.probes] == [(0, 2)]
    assert (bisection.passed_prefix, bisection.failed_prefix, bisection.is_searching) == (0, 4, True)


def test_members_of_a_passed_prefix_are_cleared_and_leave_the_bisection():
    world = a_failed_batch()
    world.passes(1, 2)
    bisection = bisection_of(world)
    assert [member.role for member in bisection.members] == [MemberRole.CLEARED] * 2 + [MemberRole.CANDIDATE] * 2
    assert [member.here for member in bisection.members] == [False, False, True, True]


def test_members_after_a_failed_prefix_are_no_longer_candidates():
    world = a_failed_batch()
    world.fails(1, 2)
    roles = [member.role for member in bisection_of(world).members]
    assert roles == [MemberRole.CANDIDATE] * 2 + [MemberRole.AFTER] * 2


def test_members_have_their_submission_until_they_leave_the_queue():
    world = a_failed_batch()
    world.fails(1, 2)
    world.cancel(4)
    *others, left = bisection_of(world).members
    assert (left.submission, left.number, left.merged) == (None, 4, False)
    assert [member.submission and member.submission.number for member in others] == [1, 2, 3]


def test_the_failed_run_of_a_bisection_and_failing_batches_are_named_once():
    world = a_failed_batch()
    graph = graph_of(world)
    bisection = bisection_of(world)
    assert [run.id for run in graph.failing_runs] == [bisection.batch_run.id] == [bisection.failed_run.id]
    world.fails(1, 2)
    bisection = bisection_of(world)
    assert [run.id for run in graph_of(world).failing_runs] == [bisection.batch_run.id, bisection.failed_run.id]


@pytest.mark.parametrize(
    ("candidates", "probes", "rounds"),
    [(1, 1, 0), (2, 1, 1), (3, 1, 2), (4, 1, 2), (5, 1, 3), (4, 0, 2), (4, 3, 1), (4, 5, 1), (9, 2, 2)],
)
def test_rounds_of_a_bisection_are_estimated_from_the_candidates_and_the_probes(
    candidates: int, probes: int, rounds: int
):
    assert estimate_rounds(candidates, probes) == rounds


def test_a_bisection_estimates_its_rounds_from_what_it_knows():
    world = a_failed_batch()
    assert bisection_of(world).rounds_left == 2
    world.passes(1, 2)
    assert bisection_of(world).rounds_left == 1


def test_the_last_of_the_shortest_failed_prefix_is_the_suspect_and_waits_for_the_others():
    world = a_failed_batch()
    world.fails(1, 2)
    world.build()
    world.passes(1)
    bisection = bisection_of(world)
    assert (bisection.is_searching, bisection.suspect, bisection.prs_ahead) == (False, 2, (1,))
    assert [member.role for member in bisection.members][1] is MemberRole.SUSPECT


def test_the_confirming_run_of_the_suspect_is_shown_at_its_place():
    world = a_failed_batch()
    world.fails(1, 2)
    world.build()
    world.passes(1)
    world.perform_pending_tasks()
    for others in ((3, 4), (1,)):
        world.passes(*others)
        world.perform_pending_tasks()
    bisection = bisection_of(world)
    assert [(probe.start, probe.length) for probe in bisection.probes] == [(1, 1)]
    assert bisection.prs_ahead == ()


def test_the_time_that_a_bisection_needs_counts_what_its_runs_took_already():
    world = a_world(prs=4, batch=4)
    world.fails(1, 2, 3, 4)
    world.build()
    world.queue = replace(world.queue, durations=(10 * MINUTE,))
    (bisection,) = world.queue.bisections

    def minutes_left(after: int) -> float:
        found = build_bisection(world.queue, bisection, later(world.now, after * MINUTE))
        assert found.time_left_ms is not None
        return found.time_left_ms / MINUTE

    rounds = build_bisection(world.queue, bisection, world.now).rounds_left
    assert minutes_left(0) == rounds * 10
    assert minutes_left(4) == rounds * 10 - 4
    assert minutes_left(50) == (rounds - 1) * 10 + 5
    world.queue = replace(world.queue, durations=())
    assert build_bisection(world.queue, bisection, world.now).time_left_ms is None
