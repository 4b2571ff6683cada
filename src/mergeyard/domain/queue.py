"""The queue: everything that is known about it, in one value."""

from collections.abc import Mapping

from msgspec import Struct, field

from mergeyard.domain.config import Config, Mode
from mergeyard.domain.durations import Duration
from mergeyard.domain.experience import Experience
from mergeyard.domain.ids import PrNumber, QueueId, RunId, Ticket
from mergeyard.domain.instants import Instant
from mergeyard.domain.journal import Entry
from mergeyard.domain.landing import Landing
from mergeyard.domain.line import Batch, Bisection, Line
from mergeyard.domain.pulls import Submission
from mergeyard.domain.runs import Run
from mergeyard.domain.sorted_map import SortedMap
from mergeyard.domain.states import QueueState, RunStatus
from mergeyard.domain.target_branch import TargetBranch


class Counters(Struct, frozen=True):
    """Everything that is numbered gets its number here, so that deciding again gives the same ones."""

    turns: int = 0
    tickets: int = 0
    batches: int = 0
    runs: int = 0
    landings: int = 0


class News(Struct, frozen=True):
    """What the present turn has to tell; empty between turns."""

    journal: SortedMap[int, Entry] = SortedMap()
    concluded: SortedMap[Ticket, Submission] = SortedMap()
    finished: tuple[Run, ...] = ()
    settled: "Queue | None" = None
    """The queue as the turn before left it: what is the same as there has nothing left to be done."""


class Queue(Struct, frozen=True, kw_only=True):
    id: QueueId
    target: TargetBranch
    config: Config = Config()
    mode: Mode = Mode.SINGLE
    """The mode that the present line was built in; another one than the setting while modes switch."""
    ordered_state: QueueState = QueueState.RUNNING
    """What somebody last asked for: RUNNING, PAUSED or DRAINING."""
    paused_at: Instant | None = None
    words: str = ""
    """Why the queue paused itself, in the host's words."""
    ran: int = 0
    """Milliseconds spent RUNNING before `running_since`: the clock of those that are not ready."""
    running_since: Instant | None = None
    host_lost_at: Instant | None = None
    doors: Mode | None = None
    """The mode for which new ones are admitted; None while nobody is."""
    counters: Counters = Counters()

    submissions: SortedMap[Ticket, Submission] = SortedMap()
    """Every stay that has not ended."""
    tickets: SortedMap[PrNumber, Ticket] = SortedMap()
    not_ready: SortedMap[tuple[int, Ticket], None] = SortedMap()
    """By the running clock's reading when they became so: the first is the first to time out."""
    waiting: Mapping[int, SortedMap[Ticket, None]] = field(default_factory=dict[int, SortedMap[Ticket, None]])
    """The admitted that may go into the line, by priority, then by submission."""
    held: SortedMap[Ticket, None] = SortedMap()
    """The admitted that must stay out of it for now."""
    looks: SortedMap[Ticket, int] = SortedMap()
    """Those of which somebody said that they changed, and in which turn: a look begun since then is needed."""
    direct: Ticket | None = None
    """The one that may merge without a run, or whose head is examined for it."""
    line: Line = Line()
    bisections: tuple[Bisection, ...] = ()
    runs: Mapping[RunId, Run] = field(default_factory=dict[RunId, Run])
    """Every run that is active, whose verdict still counts, or whose test branch may still exist."""
    landing: Landing | None = None
    durations: tuple[Duration, ...] = ()
    """Of the last green runs and those that were stopped among them, the latest last; none until one was green."""
    experience: Experience = Experience()
    news: News = News()

    @property
    def switching(self) -> bool:
        return self.mode is not self.config.mode

    @property
    def state(self) -> QueueState:
        if self.switching and self.ordered_state is not QueueState.PAUSED:
            return QueueState.SWITCHING_MODES
        return self.ordered_state

    @property
    def may_start(self) -> bool:
        return self.state in (QueueState.RUNNING, QueueState.DRAINING)

    @property
    def paused(self) -> bool:
        return self.ordered_state is QueueState.PAUSED

    @property
    def bisected(self) -> tuple[Ticket, ...]:
        """Those beside the line, among whom a guilty one is sought."""
        return tuple(ticket for bisection in self.bisections for ticket in bisection.members)

    @property
    def placed(self) -> tuple[Ticket, ...]:
        """In the line or beside it."""
        return (*self.line.tickets, *self.bisected)

    @property
    def runs_in_progress(self) -> tuple[Run, ...]:
        return tuple(run for run in self.runs.values() if run.status is RunStatus.IN_PROGRESS)

    def runs_of(self, tested: Batch | Bisection) -> tuple[Run, ...]:
        return tuple(self.runs[run] for run in tested.runs)

    def submission_of(self, number: PrNumber) -> Submission | None:
        ticket = self.tickets.get(number)
        return None if ticket is None else self.submissions[ticket]
