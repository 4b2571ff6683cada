"""The complete state of a merge queue as one immutable value: batches, landing, target branch, and decisions."""

from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property

from msgspec import Struct, field

from mergeyard.domain.config import Config, LandingMethod, Mode
from mergeyard.domain.ids import BatchId, PullRequestNumber, QueueId, RunId, Sha, SubmissionId
from mergeyard.domain.journal import DecisionEntry
from mergeyard.domain.pull_requests import ALL_TARGETS, ImpactedTargets, RequiredStatuses, Submission
from mergeyard.domain.runs import HeadMove, Member, Run, Step
from mergeyard.domain.sorted_map import SortedMap
from mergeyard.domain.states import QueueState, Reason, Refusal, RunStatus
from mergeyard.domain.timestamps import Duration, Instant


class Batch(Struct, frozen=True, kw_only=True):
    id: BatchId
    submission_ids: tuple[SubmissionId, ...]
    impacted_targets: ImpactedTargets = ALL_TARGETS
    """Fixed when the batch became active: targets uploaded during a run count from the next start."""
    prerequisites: frozenset[SubmissionId] = frozenset()
    """The submissions whose commits its members contain. They stay ahead of it whatever their targets."""
    urgent: bool = False
    preemptions: int = 0
    runs: tuple[RunId, ...] = ()
    """The runs whose result still counts, the latest last."""


class LaneIndex(Struct, frozen=True):
    """Maps each impacted target to the last batch that claimed it.

    Newer segments win. Segment sizes grow geometrically from the newest back, so that appending a batch copies little
    and a lookup reads few segments.
    """

    segments: tuple[Mapping[str, BatchId], ...] = ()
    last_impacting_all: BatchId | None = None
    """The last batch that impacts all targets."""


class ActiveBatches(Struct, frozen=True, dict=True):
    batches: tuple[Batch, ...] = ()
    ahead: Mapping[BatchId, tuple[BatchId, ...]] = field(default_factory=dict[BatchId, tuple[BatchId, ...]])
    """For each batch, all batches it depends on, transitively, in order."""
    index: LaneIndex = LaneIndex()

    @property
    def submission_ids(self) -> tuple[SubmissionId, ...]:
        return tuple(submission_id for batch in self.batches for submission_id in batch.submission_ids)

    @cached_property
    def by_id(self) -> Mapping[BatchId, Batch]:
        return {batch.id: batch for batch in self.batches}


class Bisection(Struct, frozen=True, kw_only=True):
    """The search for the culprit of a failed batch.

    It is pinned to the base of its failed run, whatever the target branch does, so that its results stay comparable.
    """

    id: BatchId
    submission_ids: tuple[SubmissionId, ...]
    """The whole batch as it failed, including members that were returned to the waiting submissions since."""
    impacted_targets: ImpactedTargets
    batch_run: Run
    passed_prefix: int = 0
    """The length of the longest prefix known to pass."""
    failed_prefix: int
    """The length of the shortest prefix known to fail."""
    failed_run: Run
    merged_submission_ids: frozenset[SubmissionId] = frozenset()
    runs: tuple[RunId, ...] = ()
    """Runs that test prefixes, later the run that confirms the suspect."""
    is_confirming: bool = False

    @property
    def base(self) -> Sha:
        """The commit that the batch was tested on. All runs of the bisection use it."""
        return self.batch_run.tested_on

    @property
    def steps(self) -> tuple[Step, ...]:
        return self.batch_run.chain[len(self.batch_run.prs_ahead) :]

    @property
    def is_searching(self) -> bool:
        return self.failed_prefix - self.passed_prefix > 1

    @property
    def suspect(self) -> SubmissionId:
        return self.submission_ids[self.failed_prefix - 1]

    @property
    def prefix(self) -> tuple[SubmissionId, ...]:
        """The members that the suspect failed on top of."""
        return self.submission_ids[: self.failed_prefix - 1]

    @property
    def members(self) -> tuple[SubmissionId, ...]:
        """The members still in the bisection: not part of the passed prefix, not after the failed prefix."""
        return self.submission_ids[self.passed_prefix : self.failed_prefix]


class LandingPhase(StrEnum):
    REBASING = "rebasing"
    """The tested contents are being put onto a tip that moved."""
    READING = "reading"
    """Its pull requests are being read once more."""
    INTENDED = "intended"
    """The intent is saved: from here only the host decides the outcome, and nothing else changes these
    pull requests."""


class Landing(Struct, frozen=True, kw_only=True):
    number: int
    phase: LandingPhase
    run: RunId
    """The run that verified it. It stays in the queue as long as the landing does."""
    members: tuple[Member, ...]
    expected_tip: Sha
    """The commit that the target branch must be at when it is moved."""
    base: Sha
    """The base of the tested chain."""
    tested_steps: tuple[Step, ...]
    """The tested step of each member."""
    steps: tuple[Step, ...] = ()
    """The step of each member on the target branch; unknown while rebasing."""
    landing_method: LandingMethod
    rebased: bool = False
    pull_requests_read: bool = False
    """Its pull requests were read after it was chosen, and all of them can still merge."""
    test_branch_tip: Sha
    """The tip of the test branch, which the same push deletes."""
    head_moves: tuple[HeadMove, ...] = ()
    """The head branches that the landing moves; decided together with the intent."""

    @property
    def submission_ids(self) -> tuple[SubmissionId, ...]:
        return tuple(member.submission_id for member in self.members)

    @property
    def is_intended(self) -> bool:
        return self.phase is LandingPhase.INTENDED


class LandedCommit(Struct, frozen=True):
    """A commit of the target branch since it was last moved by anyone but this queue."""

    commit: Sha
    tree: Sha | None
    submission_id: SubmissionId | None = None
    """None: the commit that the history starts with."""
    impacted_targets: ImpactedTargets = ALL_TARGETS


class BaseRetry(Struct, frozen=True, kw_only=True):
    """When the tip, which failed its own test, is tested again."""

    base: Sha
    failures: int
    """Base runs of it that failed."""
    due_at: Instant


class TargetBranch(Struct, frozen=True, kw_only=True, dict=True):
    name: str
    tip: Sha | None = None
    """None: the branch does not exist."""
    deleted_tip: Sha | None = None
    """The last known tip, while the branch does not exist."""
    history: tuple[LandedCommit, ...] = ()
    """From the oldest base that is still needed to the tip. A push by anyone else starts a new history."""
    required_statuses: RequiredStatuses = RequiredStatuses()
    passed_bases: frozenset[Sha] = frozenset()
    """Commits on which a base run passed, and tips that landed as tested."""
    broken_bases: frozenset[Sha] = frozenset()
    """Commits on which a base run failed."""
    base_retry: BaseRetry | None = None
    """None: the tip is not known to have failed."""
    removed_commits: frozenset[Sha] = frozenset()
    """Commits that a push removed from the branch. The queue never merges them, unless the branch contains them again:
    a leaked secret that was removed must not come back with a pull request that is based on it."""
    reported_mismatches: tuple[str, ...] = ()
    """Keys of the mismatches the queue has paused for, the latest last. It does not pause for them again."""
    recorded_at_revision: int = 0
    """The revision in which its tip was last recorded."""
    refresh_requested: bool = False
    """The worker must read it again. Until then nothing lands."""

    @property
    def last_tip(self) -> Sha | None:
        return self.tip or self.deleted_tip

    @cached_property
    def history_index(self) -> Mapping[Sha, int]:
        """The index of each commit in the history."""
        return {landed.commit: index for index, landed in enumerate(self.history)}

    @cached_property
    def landed_submission_ids(self) -> frozenset[SubmissionId | None]:
        return frozenset(landed.submission_id for landed in self.history)

    @cached_property
    def history_by_impacted_target(self) -> Mapping[str, tuple[int, ...]]:
        """The history indexes at which each target was impacted."""
        indexes = dict[str, tuple[int, ...]]()
        for index, landed in enumerate(self.history):
            for name in landed.impacted_targets.names:
                indexes[name] = (*indexes.get(name, ()), index)
        return indexes

    @cached_property
    def history_impacting_all(self) -> tuple[int, ...]:
        return tuple(index for index, landed in enumerate(self.history) if landed.impacted_targets.everything)


class PassRateModel(Struct, frozen=True):
    """Each feature of a pull request contributes a weight in log-odds to the probability that it passes."""

    weights: Mapping[str, float] = field(default_factory=dict[str, float])
    """By feature, most recently updated last. A feature that is absent has its prior weight."""
    recently_failed: tuple[int, ...] = ()
    """The numbers of pull requests that failed a test recently."""


class Counters(Struct, frozen=True):
    """The source of all numbers: repeating a decision gives the same ones."""

    revision: int = 0
    submissions: int = 0
    batches: int = 0
    runs: int = 0
    landings: int = 0


class DecisionOutput(Struct, frozen=True):
    """What the current decision has produced so far; empty between decisions."""

    journal: SortedMap[int, DecisionEntry] = SortedMap()
    concluded_submissions: SortedMap[SubmissionId, Submission] = SortedMap()
    finished_runs: tuple[Run, ...] = ()


class Obstacle(Struct, frozen=True, kw_only=True):
    """What keeps tasks from being done. Every task is tried again until it is done, so it ends by itself."""

    reason: Reason
    since: Instant
    detail: str = ""
    """What the Git host said, cleaned and shortened."""
    number: PullRequestNumber | None = None
    """The only pull request that the Git host is known to refuse; None: the whole queue is concerned."""
    until: Instant | None = None
    """When it ends, if the Git host named a time."""
    only_waiting: bool = False
    """Pull requests under test go on."""


class Queue(Struct, frozen=True, kw_only=True):
    id: QueueId
    target_branch: TargetBranch
    config: Config = Config()
    mode: Mode = Mode.SINGLE
    """The mode that the active batches were built in; it differs from the setting while modes switch."""
    requested_state: QueueState = QueueState.RUNNING
    """The state that was last requested: RUNNING, PAUSED or DRAINING."""
    paused_at: Instant | None = None
    state_reason: str = ""
    """Why the queue is paused or draining: what a user gave as the reason, or the detail of an automatic pause; else
    empty."""
    running_ms: int = 0
    """Milliseconds spent RUNNING before `running_since`. The not-ready timeout counts this time."""
    running_since: Instant | None = None
    obstacle: Obstacle | None = None
    """What keeps the tasks of this queue from being done; None: nothing, as far as is known."""
    admitting_mode: Mode | None = None
    """The mode whose admission rules apply; None while nothing is admitted."""
    counters: Counters = Counters()

    submissions: SortedMap[SubmissionId, Submission] = SortedMap()
    """All submissions that have not ended."""
    submission_by_number: SortedMap[PullRequestNumber, SubmissionId] = SortedMap()
    not_ready: SortedMap[tuple[int, SubmissionId], None] = SortedMap()
    """By the running time at which they became not ready: the first is the next to time out."""
    waiting: Mapping[int, SortedMap[SubmissionId, None]] = field(
        default_factory=dict[int, SortedMap[SubmissionId, None]]
    )
    """Admitted submissions that can be batched, by priority, then by submission."""
    held: SortedMap[SubmissionId, None] = SortedMap()
    """Admitted submissions that must stay out of every stack for now."""
    refresh_requested: SortedMap[SubmissionId, int] = SortedMap()
    """Submissions whose pull request is reported to have changed, with the revision of that report: only a read that
    began at this revision or later clears the request."""
    active: ActiveBatches = ActiveBatches()
    bisections: tuple[Bisection, ...] = ()
    runs: Mapping[RunId, Run] = field(default_factory=dict[RunId, Run])
    """Every run that is active, whose result still counts, or whose test branch may still exist."""
    landing: Landing | None = None
    durations: tuple[Duration, ...] = ()
    """Of the last passed runs and the stopped runs among them, the latest last; empty until a run passed."""
    pass_rate_model: PassRateModel = PassRateModel()
    output: DecisionOutput = DecisionOutput()

    @property
    def is_switching_modes(self) -> bool:
        return self.mode is not self.config.mode

    @property
    def is_obstructed(self) -> bool:
        """Whether something keeps the whole queue from working, not only some of its pull requests."""
        obstacle = self.obstacle
        return obstacle is not None and obstacle.number is None and not obstacle.only_waiting

    @property
    def state(self) -> QueueState:
        if self.is_switching_modes and self.requested_state is not QueueState.PAUSED:
            return QueueState.SWITCHING_MODES
        return self.requested_state

    @property
    def can_start_runs(self) -> bool:
        return self.state in (QueueState.RUNNING, QueueState.DRAINING)

    @property
    def is_paused(self) -> bool:
        return self.requested_state is QueueState.PAUSED

    @property
    def bisected_submission_ids(self) -> tuple[SubmissionId, ...]:
        """The submissions in bisections."""
        return tuple(submission_id for bisection in self.bisections for submission_id in bisection.members)

    @property
    def submission_ids_under_test(self) -> tuple[SubmissionId, ...]:
        """The submissions in active batches and bisections, in this order."""
        return (*self.active.submission_ids, *self.bisected_submission_ids)

    @property
    def runs_in_progress(self) -> tuple[Run, ...]:
        return tuple(run for run in self.runs.values() if run.status is RunStatus.IN_PROGRESS)

    def runs_of(self, tested: Batch | Bisection) -> tuple[Run, ...]:
        return tuple(self.runs[run] for run in tested.runs)

    def submission_of(self, number: PullRequestNumber) -> Submission | None:
        submission_id = self.submission_by_number.get(number)
        return None if submission_id is None else self.submissions[submission_id]


class Decision(Struct, frozen=True, kw_only=True):
    queue: Queue
    journal: tuple[DecisionEntry, ...] = ()
    concluded_submissions: tuple[Submission, ...] = ()
    """Submissions that ended in this decision. The queue drops them; the store keeps them."""
    finished_runs: tuple[Run, ...] = ()
    """Runs that left the queue in this decision. The store keeps them."""
    refusals: Mapping[int, Refusal]
    """Which of the events, by index, were requests that changed nothing, and why."""
    wake_at: Instant | None = None
    """When to decide again, even if no event arrives until then."""
