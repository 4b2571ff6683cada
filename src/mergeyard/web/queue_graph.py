"""The queue as a graph for its page: the target branch, the active batches in lanes, and the bisections.

Only the part that is shown is built, so the cost does not grow with the length of the queue.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import accumulate

from msgspec import Struct

from mergeyard.domain.config import Mode
from mergeyard.domain.ids import BatchId, PullRequestNumber, Sha
from mergeyard.domain.pull_requests import ImpactedTargets, Submission
from mergeyard.domain.queue import Batch, Bisection, LandingPhase, Queue
from mergeyard.domain.runs import Run
from mergeyard.domain.states import REASON_MESSAGES, CheckState, RunStatus
from mergeyard.domain.timestamps import Instant, later
from mergeyard.engine import blame, estimates, run_validity, views
from mergeyard.web.formats import TargetList, list_targets
from mergeyard.web.run_progress import RunProgress, measure_progress

StackedOn = Mapping[BatchId, Sequence[BatchId]]
"""The batches that each batch is directly stacked on."""

SWITCH_PATHS = {
    "down": "M0 0C50 0 50 100 100 100",
    "down-begins": "M0 0C50 0 50 40 50 100",
    "down-ends": "M50 0C50 60 50 100 100 100",
    "up": "M0 100C50 100 50 0 100 0",
    "up-begins": "M0 100C50 100 50 60 50 0",
    "up-ends": "M50 100C50 40 50 0 100 0",
    "through": "M50 0V100",
}
"""SVG paths in a box of 100 × 100, from the rail of the lane above to the rail of this lane."""


class GridPosition(Struct, frozen=True):
    lane: int
    column: int


class GridCell(Struct, kw_only=True):
    """A cell of the grid, and the gap before it."""

    batch: BatchId | None = None
    rail: bool = False
    lead: bool = False
    """Whether the rail also runs through the gap."""
    switches: tuple[str, ...] = ()

    @property
    def paths(self) -> list[str]:
        return [SWITCH_PATHS[switch] for switch in self.switches]


class Grid:
    """All lanes have the same length."""

    def __init__(self, positions: Mapping[BatchId, GridPosition]) -> None:
        self.columns = 1 + max((position.column for position in positions.values()), default=-1)
        lanes = 1 + max((position.lane for position in positions.values()), default=-1)
        self.lanes = [self._make_lane() for _ in range(lanes)]
        for batch, position in positions.items():
            self.lanes[position.lane][position.column] = GridCell(batch=batch, rail=True)

    def connect(self, lower: GridPosition, upper: GridPosition) -> None:
        """Draws a rail that passes no other batch: along the lower lane, else along the upper one, else along a new
        lane at the end of the grid."""
        start, end = lower.column + 1, upper.column
        if self._is_free(lower.lane, start, end):
            self._draw_rail(lower.lane, start, end)
            self._draw_lead(lower.lane, start, end)
            self._draw_switch(lower.lane, upper.lane, end)
        elif self._is_free(upper.lane, start, end):
            self._draw_switch(lower.lane, upper.lane, start)
            self._draw_rail(upper.lane, start, end)
            self._draw_lead(upper.lane, start + 1, end + 1)
        else:
            self.lanes.append(self._make_lane())
            bypass = len(self.lanes) - 1
            self._draw_switch(lower.lane, bypass, start)
            self._draw_rail(bypass, start, end)
            self._draw_lead(bypass, start + 1, end)
            self._draw_switch(bypass, upper.lane, end)

    def _make_lane(self) -> list[GridCell]:
        return [GridCell() for _ in range(self.columns)]

    def _is_free(self, lane: int, start: int, end: int) -> bool:
        return all(cell.batch is None for cell in self.lanes[lane][start:end])

    def _draw_rail(self, lane: int, start: int, end: int) -> None:
        for cell in self.lanes[lane][start:end]:
            cell.rail = True

    def _draw_lead(self, lane: int, start: int, end: int) -> None:
        for cell in self.lanes[lane][start:end]:
            cell.lead = True

    def _draw_switch(self, source: int, destination: int, column: int) -> None:
        if source == destination:
            self.lanes[destination][column].lead = True
        for lane, piece in _choose_pieces(source, destination):
            cell = self.lanes[lane][column]
            if piece not in cell.switches:
                cell.switches += (piece,)


def lay_out_lanes(order: Sequence[BatchId], stacked_on: StackedOn) -> list[list[GridCell]]:
    positions = _assign_positions(order, stacked_on)
    grid = Grid(positions)
    for batch in order:
        if not stacked_on[batch]:
            grid.lanes[positions[batch].lane][0].lead = True
        for other in stacked_on[batch]:
            grid.connect(positions[other], positions[batch])
    return grid.lanes


def _assign_positions(order: Sequence[BatchId], stacked_on: StackedOn) -> dict[BatchId, GridPosition]:
    positions, lane_ends = dict[BatchId, GridPosition](), list[BatchId]()
    for batch in order:
        below = sorted((positions[other] for other in stacked_on[batch]), key=lambda position: -position.column)
        lane = next((each.lane for each in below if positions[lane_ends[each.lane]] == each), len(lane_ends))
        positions[batch] = GridPosition(lane, below[0].column + 1 if below else 0)
        lane_ends[lane : lane + 1] = [batch]
    return positions


def _choose_pieces(source: int, destination: int) -> Iterator[tuple[int, str]]:
    """The pieces from the rail of one lane to the rail of the other; a rail lies at the lower edge of its lane."""
    direction = "down" if destination > source else "up"
    lanes = range(source + 1, destination + 1) if destination > source else range(source, destination, -1)
    for lane in lanes:
        if len(lanes) == 1:
            yield lane, direction
        elif lane == lanes[0]:
            yield lane, f"{direction}-begins"
        else:
            yield lane, f"{direction}-ends" if lane == lanes[-1] else "through"


class MemberRole(StrEnum):
    """The values are CSS classes and keys of the labels in the template."""

    CLEARED = "cleared"
    """In a prefix that passed."""
    CANDIDATE = "candidate"
    """In the shortest prefix that failed, outside of the longest prefix that passed."""
    SUSPECT = "suspect"
    """The only candidate left."""
    AFTER = "after"
    """After the shortest prefix that failed; not tested by this bisection."""


class BisectionMember(Struct, frozen=True, kw_only=True):
    number: PullRequestNumber
    role: MemberRole
    submission: Submission | None
    """None after it left the queue."""
    merged: bool
    here: bool
    """Whether the pull request is still part of the bisection, and shown nowhere else on the page."""


class Probe(Struct, frozen=True):
    """A run of the bisection: it tests a prefix of the batch, or the suspect alone on top of what merged."""

    start: int
    length: int
    progress: RunProgress


class BisectionView(Struct, frozen=True, kw_only=True):
    id: BatchId
    members: tuple[BisectionMember, ...]
    passed_prefix: int
    """The length of the longest prefix that passed."""
    failed_prefix: int
    """The length of the shortest prefix that failed."""
    batch_run: Run
    """The run of the whole batch."""
    failed_run: Run
    """The run of the shortest prefix that failed."""
    probes: tuple[Probe, ...]
    is_searching: bool
    rounds_left: int
    """An estimate: how many rounds of runs are left until one candidate is left."""
    time_left_ms: int | None
    """Until then, with what the runs of this round took already; None while nothing is known about durations."""
    suspect: PullRequestNumber
    prs_ahead: tuple[PullRequestNumber, ...]
    """The pull requests that must merge before the suspect is tested again."""


def build_bisection(queue: Queue, bisection: Bisection, now: Instant) -> BisectionView:
    numbers = {member.submission_id: member.number for member in bisection.batch_run.tested_members}
    members = frozenset(bisection.members)
    probes = tuple(sorted(_list_probes(queue, bisection, now), key=lambda probe: probe.length))
    rounds_left = estimate_rounds(bisection.failed_prefix - bisection.passed_prefix, len(probes))
    return BisectionView(
        id=bisection.id,
        members=tuple(
            BisectionMember(
                number=numbers[submission_id],
                role=_find_role(bisection, position),
                submission=(submission := queue.submissions.get(submission_id)),
                merged=submission_id in bisection.merged_submission_ids,
                here=submission_id in members and submission is not None,
            )
            for position, submission_id in enumerate(bisection.submission_ids, start=1)
        ),
        passed_prefix=bisection.passed_prefix,
        failed_prefix=bisection.failed_prefix,
        batch_run=bisection.batch_run,
        failed_run=bisection.failed_run,
        probes=probes,
        is_searching=bisection.is_searching,
        rounds_left=rounds_left,
        time_left_ms=_estimate_time_left(queue, [probe.progress.run for probe in probes], rounds_left, now),
        suspect=numbers[bisection.suspect],
        prs_ahead=tuple(
            numbers[submission_id]
            for submission_id in bisection.prefix
            if submission_id not in bisection.merged_submission_ids and submission_id in queue.submissions
        ),
    )


def _estimate_time_left(queue: Queue, runs: Sequence[Run], rounds: int, now: Instant) -> int | None:
    """A round ends with its slowest run, and one that takes longer than usual goes on."""
    usual = estimates.median_run_duration_ms(queue)
    if usual is None or not queue.can_start_runs:
        return None
    round_ends = [estimates.ends_at(run, usual, now) for run in runs if run.is_active]
    first_round = max(round_ends, default=later(now, usual)) - now
    return first_round + max(0, rounds - 1) * usual


def estimate_rounds(candidates: int, probes: int) -> int:
    """With one probe at a time a round halves the candidates; n probes leave one part of n + 1."""
    rounds = 0
    while candidates > 1:
        parts = min(max(1, probes), candidates - 1) + 1
        candidates = -(-candidates // parts)
        rounds += 1
    return rounds


def _list_probes(queue: Queue, bisection: Bisection, now: Instant) -> list[Probe]:
    active = run_validity.active_runs(queue, bisection.runs)
    start = bisection.failed_prefix - 1 if bisection.is_confirming else 0
    return [Probe(start, run.tested_count, measure_progress(queue, run, now)) for run in active]


def _find_role(bisection: Bisection, position: int) -> MemberRole:
    if position <= bisection.passed_prefix:
        return MemberRole.CLEARED
    if position > bisection.failed_prefix:
        return MemberRole.AFTER
    return MemberRole.CANDIDATE if bisection.is_searching else MemberRole.SUSPECT


MAX_BATCHES = 60
MAX_PULL_REQUESTS_PER_BATCH = 10
MAX_SHARED_NAMES = 3


class BatchMark(StrEnum):
    """What a batch is doing. The values are CSS classes and keys of the icons in the template."""

    LANDING = "landing"
    PASSED = "passed"
    CLEARED = "cleared"
    """Optimistic merging: a later run that contains the batch passed."""
    TESTING = "testing"
    BUILDING = "building"
    FAILING = "failing"
    """Its run failed, and the cause is not confirmed yet."""
    WAITING = "waiting"


class Dependency(Struct, frozen=True, kw_only=True):
    """The pull requests of a batch that another batch is tested on top of, and every cause of that."""

    numbers: Sequence[PullRequestNumber]
    impacts_all: str
    """Which of the two impacts all targets; empty if neither does."""
    shared_targets: TargetList
    contains_commits: bool


class BatchView(Struct, frozen=True, kw_only=True):
    id: BatchId
    position: int
    """Of the batch, counted from 1."""
    first_position: int
    """Of its first pull request, counted from 1."""
    size: int
    submissions: Sequence[Submission]
    mark: BatchMark
    reason: str
    """Why a batch that is waiting or failing is not decided yet."""
    progress: RunProgress | None
    urgent: bool
    rebased: bool
    dependencies: Sequence[Dependency]
    """Empty in single mode, where every batch is tested on top of all batches ahead."""

    @property
    def more(self) -> int:
        return self.size - len(self.submissions)

    @property
    def last_position(self) -> int:
        return self.first_position + self.size - 1


class TargetBranchView(Struct, frozen=True, kw_only=True):
    name: str
    tip: Sha | None
    is_broken: bool
    """The tip fails its own tests."""
    progress: RunProgress | None
    """Of the run that tests the target branch itself."""
    landing: tuple[PullRequestNumber, ...]
    phase: LandingPhase | None


class QueueGraph(Struct, frozen=True, kw_only=True):
    target_branch: TargetBranchView
    lanes: Sequence[Sequence[GridCell]]
    batches: Mapping[BatchId, BatchView]
    hidden_count: int
    """The number of batches beyond `MAX_BATCHES`."""
    bisections: tuple[BisectionView, ...]

    @property
    def has_lanes(self) -> bool:
        return len(self.lanes) > 1

    @property
    def failing_runs(self) -> list[Run]:
        """The runs on the page that failed, or have a failed check."""
        progress = [self.target_branch.progress, *(batch.progress for batch in self.batches.values())]
        runs = [each.run for each in progress if each is not None]
        runs += [run for bisection in self.bisections for run in (bisection.batch_run, bisection.failed_run)]
        failing = (run for run in runs if run.status is RunStatus.FAILED or CheckState.FAILED in run.checks.values())
        return list({run.id: run for run in failing}.values())


def build_queue_graph(queue: Queue, now: Instant) -> QueueGraph:
    batches = queue.active.batches[:MAX_BATCHES]
    stacked_on = _find_direct_predecessors(queue, batches)
    sizes = accumulate((len(batch.submission_ids) for batch in batches), initial=1)
    batch_views = [
        _build_batch(queue, batch, stacked_on[batch.id], (position, first_position), now)
        for position, (batch, first_position) in enumerate(zip(batches, sizes, strict=False), start=1)
    ]
    return QueueGraph(
        target_branch=_build_target_branch(queue, now),
        lanes=lay_out_lanes([batch.id for batch in batches], stacked_on),
        batches={view.id: view for view in batch_views},
        hidden_count=len(queue.active.batches) - len(batches),
        bisections=tuple(build_bisection(queue, bisection, now) for bisection in queue.bisections),
    )


def _find_direct_predecessors(queue: Queue, batches: Sequence[Batch]) -> dict[BatchId, list[BatchId]]:
    """The batches each one is stacked on, without those that it is stacked on through another: for A ← B ← C, the
    entry of C is [B]."""
    if queue.mode is Mode.SINGLE:
        return {batch.id: [other.id for other in batches[max(0, at - 1) : at]] for at, batch in enumerate(batches)}
    stacked_on = dict[BatchId, list[BatchId]]()
    for batch in batches:
        indirect, direct = set[BatchId](), list[BatchId]()
        for other in reversed(queue.active.ahead[batch.id]):
            if other not in indirect:
                direct.insert(0, other)
                indirect.update(queue.active.ahead[other])
        stacked_on[batch.id] = direct
    return stacked_on


def _build_batch(
    queue: Queue, batch: Batch, stacked_on: Sequence[BatchId], positions: tuple[int, int], now: Instant
) -> BatchView:
    run = run_validity.passed_run(queue, batch) or run_validity.current_run(queue, batch)
    batch_mark = find_batch_mark(queue, batch)
    ahead = [other for other in queue.active.batches if other.id in stacked_on] if queue.mode is Mode.PARALLEL else []
    return BatchView(
        id=batch.id,
        position=positions[0],
        first_position=positions[1],
        size=len(batch.submission_ids),
        submissions=_list_submissions(queue, batch),
        mark=batch_mark,
        reason=_explain_waiting(queue, batch, now) if batch_mark in (BatchMark.WAITING, BatchMark.FAILING) else "",
        progress=None if run is None or run.restart_requested else measure_progress(queue, run, now),
        urgent=batch.urgent,
        rebased=batch_mark is BatchMark.LANDING and queue.landing is not None and queue.landing.rebased,
        dependencies=[_build_dependency(queue, batch, other) for other in ahead],
    )


def _explain_waiting(queue: Queue, batch: Batch, now: Instant) -> str:
    waiting = views.wait_reason(queue, queue.submissions[batch.submission_ids[0]], now)
    return REASON_MESSAGES[waiting.reason]


def _list_submissions(queue: Queue, batch: Batch) -> list[Submission]:
    return [queue.submissions[submission_id] for submission_id in batch.submission_ids[:MAX_PULL_REQUESTS_PER_BATCH]]


def _build_dependency(queue: Queue, batch: Batch, other: Batch) -> Dependency:
    shared = ImpactedTargets(batch.impacted_targets.names & other.impacted_targets.names)
    return Dependency(
        numbers=[submission.number for submission in _list_submissions(queue, other)],
        impacts_all=_describe_impact_on_all(queue, batch, other),
        shared_targets=list_targets(shared, MAX_SHARED_NAMES),
        contains_commits=not batch.prerequisites.isdisjoint(other.submission_ids),
    )


def _describe_impact_on_all(queue: Queue, batch: Batch, other: Batch) -> str:
    if batch.impacted_targets.everything and other.impacted_targets.everything:
        return "both impact all targets"
    if batch.impacted_targets.everything:
        return f"this {'pull request' if len(batch.submission_ids) == 1 else 'batch'} impacts all targets"
    if other.impacted_targets.everything:
        first, *rest = other.submission_ids
        return f"{'that batch' if rest else f'#{queue.submissions[first].number}'} impacts all targets"
    return ""


def find_batch_mark(queue: Queue, batch: Batch) -> BatchMark:
    run = run_validity.current_run(queue, batch)
    if queue.landing is not None and batch.submission_ids[0] in queue.landing.submission_ids:
        return BatchMark.LANDING
    if run_validity.has_passed(queue, batch):
        return BatchMark.PASSED
    if run_validity.is_cleared(queue, batch):
        return BatchMark.CLEARED
    if run is None or run_validity.must_be_repeated(queue, run):
        return BatchMark.WAITING
    if run_validity.has_failed_finally(queue, run):
        return BatchMark.FAILING
    return BatchMark.BUILDING if run.status is RunStatus.PREPARING else BatchMark.TESTING


def _build_target_branch(queue: Queue, now: Instant) -> TargetBranchView:
    landing, target_branch = queue.landing, queue.target_branch
    base_run = next((run for run in blame.base_runs(queue).values() if run.is_active), None)
    return TargetBranchView(
        name=target_branch.name,
        tip=target_branch.tip,
        is_broken=target_branch.tip in target_branch.broken_bases,
        progress=None if base_run is None else measure_progress(queue, base_run, now),
        landing=()
        if landing is None
        else tuple(member.number for member in landing.members[:MAX_PULL_REQUESTS_PER_BATCH]),
        phase=None if landing is None else landing.phase,
    )
