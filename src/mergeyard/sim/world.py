"""A queue in a simulated world: the engine, a host, a CI and a clock that somebody moves."""

from collections.abc import Callable, Iterable, Sequence

from mergeyard.domain import events as e
from mergeyard.domain.config import Config
from mergeyard.domain.decision import Decision
from mergeyard.domain.ids import PrNumber, QueueId, Sha
from mergeyard.domain.instants import Instant
from mergeyard.domain.journal import PrChanged
from mergeyard.domain.landing import Landed
from mergeyard.domain.pulls import PullRequest, Submission
from mergeyard.domain.queue import Queue
from mergeyard.domain.required import Required
from mergeyard.domain.runs import Run
from mergeyard.domain.states import Mergeability
from mergeyard.domain.target_branch import TargetBranch
from mergeyard.domain.targets import Targets
from mergeyard.engine.decide import decide
from mergeyard.engine.work import work
from mergeyard.sim.checks import Checks, Truth
from mergeyard.sim.host import Host
from mergeyard.sim.repository import Content, Repository

TARGET = "main"
MOST_WORK = 1000
START = Instant(1_700_000_000_000)
REQUIRED = Required(("unit",))

Watcher = Callable[[Queue, Sequence[e.Event], Decision], None]


def never() -> bool:
    return False


class World:
    def __init__(self, config: Config, *, proven: bool = True, flakes: Callable[[], bool] = never) -> None:
        self.truth = Truth()
        self.repository = Repository({"README": "hello"})
        self.checks = Checks(self.repository, self.truth, flakes)
        self.host = Host(self.repository, self.checks, TARGET, REQUIRED)
        self.now = START
        self.ended: dict[PrNumber, Submission] = {}
        self.journal: list[PrChanged] = []
        self.watchers: list[Watcher] = []
        tip = self.host.tip
        target = TargetBranch(
            name=TARGET,
            tip=tip,
            history=(Landed(tip, None),),
            required=REQUIRED,
            proofs={tip: (frozenset(),)} if proven else {},
        )
        self.queue = Queue(id=QueueId("world"), target=target, config=config, mode=config.mode)

    # What people do at the host.

    def open(self, number: int, files: dict[str, Content] | None = None, *, upon: Sha | None = None) -> PrNumber:
        base = upon or self.host.tip
        changed = {**self.repository.commits[base].files, **(files or {f"file{number}": f"pr{number}"})}
        head = self.repository.commit((base,), changed, f"head of {number}")
        self.host.pulls[PrNumber(number)] = PullRequest(
            number=PrNumber(number), head=head, base=TARGET, mergeability=Mergeability.MERGEABLE
        )
        return PrNumber(number)

    def push_to_target(self, files: dict[str, Content]) -> Sha:
        tip = self.host.tip
        commit = self.repository.commit((tip,), {**self.repository.commits[tip].files, **files}, "a foreign push")
        self.repository.refs[TARGET] = commit
        return commit

    # What the queue is told.

    def tell(self, *events: e.Event) -> Decision:
        before = self.queue
        decision = decide(before, events, self.now)
        self.queue = decision.queue
        self.journal.extend(entry for entry in decision.journal if isinstance(entry, PrChanged))
        self.ended.update((submission.number, submission) for submission in decision.concluded)
        for watch in self.watchers:
            watch(before, events, decision)
        return decision

    def submission(
        self,
        number: int,
        *,
        priority: int | None = None,
        no_batch: bool | None = None,
        forced: bool | None = None,
        by_maintainer: bool = False,
        targets: Targets | None = None,
    ) -> e.PrSubmitted:
        return e.PrSubmitted(
            pull=self.host.look(PrNumber(number)),
            as_of=self.queue.counters.turns,
            priority=priority,
            no_batch=no_batch,
            forced=forced,
            by_maintainer=by_maintainer,
            targets=targets,
        )

    def pass_time(self, milliseconds: int) -> Decision:
        self.now = Instant(self.now + milliseconds)
        return self.tell()

    # What the queue's hands do.

    def perform_all(self) -> None:
        """Do all outstanding work, one task after the other, until none is left."""
        for _ in range(MOST_WORK):
            task = next(iter(work(self.queue)), None)
            if task is None:
                return
            self.tell(self.host.perform(task, self.queue.counters.turns))
        raise AssertionError("the work never ends")

    def runs_in_progress(self) -> tuple[Run, ...]:
        return self.queue.runs_in_progress

    def report(self, runs: Iterable[Run]) -> Decision:
        """The CI finishes these runs, each as the truth has it."""
        events = list[e.Event]()
        for run in runs:
            self.checks.report(run.tip, run.required)
            events.append(self.host.look_at_checks(run.id, self.queue.counters.turns))
        return self.tell(*events)
