"""Tells stories: a queue in a simulated world, moved by short sentences, with every verdict spoken by the teller.

Each sentence is one piece of news; then all outstanding work is done, unless the story withholds some of it.
Whatever happens, every turn is checked for two laws: deciding again changes nothing, and nobody waits in silence.
"""

from collections.abc import Collection
from typing import TypedDict, Unpack

from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.config import Config, LandingMethod, Mode
from mergeyard.domain.decision import Decision
from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.instants import MINUTE, Instant
from mergeyard.domain.pulls import PullRequest, Submission
from mergeyard.domain.queue import Queue
from mergeyard.domain.reasons import Reason, Refusal
from mergeyard.domain.required import Required
from mergeyard.domain.runs import Member, Run, RunKind
from mergeyard.domain.states import CheckState, Mergeability, QueueState
from mergeyard.domain.targets import ALL, Targets
from mergeyard.engine.decide import decide
from mergeyard.engine.explaining import Waiting, explain
from mergeyard.engine.picture import picture
from mergeyard.engine.reading import shown_run
from mergeyard.engine.work import work
from mergeyard.sim.world import TARGET, World
from tests.support.settings import Settings

SECOND = 1000
PATIENCE = 1000
"""How often anything may happen before a story gives up."""

FOR_OTHERS = frozenset({Reason.WAITING_FOR_PRS_AHEAD, Reason.WAITING_FOR_PRS_BEHIND, Reason.CONFLICTS_WITH_PR_AHEAD})
"""Reasons of waiting that must name whom for."""

Numbers = tuple[int, ...]


class StorySettings(Settings, total=False):
    """Here `batch` is the size of a batch, and switches batching on."""

    mode: Mode
    batch: int
    can_optimistically_merge: bool
    pending_failure_depth: int


class Asked(TypedDict, total=False):
    """What a submission may ask for."""

    priority: int
    no_batch: bool
    forced: bool
    by_maintainer: bool


class Story:
    def __init__(self, **settings: Unpack[StorySettings]) -> None:
        self._begin(World(_changed(Config(), settings)))

    @classmethod
    def on_an_unseen_base(cls, **settings: Unpack[StorySettings]) -> "Story":
        """Nobody has seen the target's tip green."""
        story = cls.__new__(cls)
        story._begin(World(_changed(Config(), settings), proven=False))
        return story

    def _begin(self, world: World) -> None:
        self.world = world
        self.world.watchers.append(self._check_laws)
        self._withheld: tuple[type[t.Task], ...] = ()
        self._updates: list[Numbers] = []
        self._targets: dict[int, Targets] = {}

    # What people do to pull requests.

    def open(self, number: int, files: dict[str, str] | None = None) -> None:
        self.world.open(number, files)

    def open_upon(self, other: int, number: int) -> None:
        """It is branched from another pull request, and so contains its commits."""
        self.world.open(number, upon=self._pull(other).head)

    def open_from(self, commit: Sha, number: int) -> None:
        self.world.open(number, upon=commit)

    def impacts(self, number: int, *names: str) -> None:
        self._targets[number] = Targets(frozenset(names))

    def impacts_everything(self, number: int) -> None:
        self._targets[number] = ALL

    def upload_targets(self, number: int, *names: str) -> None:
        targets = Targets(frozenset(names))
        self._tell(e.TargetsUploaded(number=PrNumber(number), head=self._pull(number).head, targets=targets))

    def submit(self, *numbers: int, **asked: Unpack[Asked]) -> None:
        """All in one turn; whoever is not open yet is opened."""
        for number in numbers:
            if number not in self.world.host.pulls:
                self.open(number)
        self._tell(*(self.world.submission(number, targets=self._targets.get(number), **asked) for number in numbers))

    def submit_exactly(self, number: int) -> None:
        """The submitter names the head that is meant."""
        self._tell(replace(self.world.submission(number), pinned=True))

    def priority(self, number: int, value: int) -> None:
        self.submit(number, priority=value)

    def cancel(self, number: int) -> Refusal | None:
        return self._ask(e.CancelRequested(number=PrNumber(number)))

    def restart(self, number: int) -> Refusal | None:
        return self._ask(e.RestartRequested(number=PrNumber(number)))

    def push(self, number: int) -> None:
        self.push_unheard(number)
        self.touch(number)

    def push_unheard(self, number: int) -> None:
        before = self._pull(number).head
        files = {**self.world.repository.commits[before].files, f"file{number}": f"pr{number} again"}
        head = self.world.repository.commit((before,), files, f"a push to {number}")
        self.change_unheard(number, head=head)

    def close(self, number: int) -> None:
        self._change(number, is_open=False)

    def draft(self, number: int) -> None:
        self._change(number, draft=True)

    def undraft(self, number: int) -> None:
        self._change(number, draft=False)

    def retarget(self, number: int, base: str) -> None:
        self._change(number, base=base)

    def mergeability(self, number: int, word: Mergeability) -> None:
        self._change(number, mergeability=word)

    def change_unheard(self, number: int, **changes: object) -> None:
        """Something changes at the host, and nobody tells the queue."""
        self.world.host.pulls[PrNumber(number)] = replace(self._pull(number), **changes)

    def touch(self, number: int) -> None:
        """Somebody says that it changed."""
        self._tell(e.PullTouched(number=PrNumber(number)))

    # What happens to the target.

    def tip(self) -> Sha:
        return self.world.host.tip

    def target_files(self) -> dict[str, str]:
        return dict(self.world.repository.commits[self.tip()].files)

    def foreign_push(self, files: dict[str, str] | None = None) -> None:
        self.foreign_push_unheard(files)
        self._tell(e.TargetTouched())

    def foreign_push_unheard(self, files: dict[str, str] | None = None) -> None:
        self.world.push_to_target(files or {"elsewhere": f"upon {self.tip()}"})

    def rewind(self, to: Sha) -> None:
        self.world.repository.refs[TARGET] = to
        self._tell(e.TargetTouched())

    def lose_target(self) -> None:
        """Somebody deletes the branch; a rewind brings it back."""
        self._tell(e.TargetSeen(tip=None, as_of=self.queue.counters.turns, required=self.world.host.required))

    def merge_by_hand(self, number: int) -> None:
        head, tip = self._pull(number).head, self.tip()
        files = self.world.repository.merged_files(tip, head)
        self.world.repository.refs[TARGET] = self.world.repository.commit((tip, head), files, "merged by hand")
        self.change_unheard(number, is_open=False, merged_into=TARGET)
        self._tell(e.PullTouched(number=PrNumber(number)), e.TargetTouched())

    def repository_requires(self, *statuses: str) -> None:
        """What the repository itself asks for, when the queue's settings do not say."""
        self.world.host.required = Required(statuses)
        self._tell(e.TargetTouched())

    def break_configuration(self, words: str) -> None:
        """The repository's own configuration cannot be read any more."""
        self.world.host.required = Required(config_error=words)
        self._tell(e.TargetTouched())

    # What the tests say.

    def tests_pass(self, *tested: int, upon: Numbers | None = None) -> None:
        """By the pull requests that the run tests, or by its whole stack; without any: the bare run."""
        self._report([self._in_progress(tested, upon)], CheckState.PASSED)

    def tests_fail(self, *tested: int, upon: Numbers | None = None) -> None:
        self._report([self._in_progress(tested, upon)], CheckState.FAILED)

    def all_tests_pass(self) -> None:
        """Every run in progress, in one turn."""
        self._report(self.world.runs_in_progress(), CheckState.PASSED)

    def tests_pass_until_the_end(self) -> None:
        for _ in range(PATIENCE):
            if not self.world.runs_in_progress():
                return
            self.all_tests_pass()
        raise AssertionError(f"the tests never end: {self.picture()}")

    def run_of(self, *tested: int) -> Run:
        """The run in progress that tests these, to hear of it later."""
        return self._in_progress(tested, None)

    def late_result(self, run: Run, state: CheckState) -> None:
        """The CI reports on a run that may be over by now."""
        self._report([run], state)

    def checks_pass_on_head(self, number: int, *names: str) -> None:
        self.world.checks.results[self._pull(number).head] = dict.fromkeys(names or ("unit",), CheckState.PASSED)

    def check(self, name: str, state: CheckState, *tested: int) -> None:
        """One single status of a run."""
        run = self.run_of(*tested)
        self.world.checks.results.setdefault(run.tip, {})[name] = state
        self._tell(self.world.host.look_at_checks(run.id, self.queue.counters.turns))

    def check_unheard(self, *tested: int) -> None:
        """All of a run's statuses pass, and nobody tells the queue."""
        run = self.run_of(*tested)
        self.world.checks.results[run.tip] = dict.fromkeys(run.required, CheckState.PASSED)

    # What operators do.

    def pause(self) -> None:
        self._tell(e.StateRequested(state=QueueState.PAUSED))

    def drain(self) -> None:
        self._tell(e.StateRequested(state=QueueState.DRAINING))

    def resume(self) -> None:
        self._tell(e.StateRequested(state=QueueState.RUNNING))

    def settings(self, **changes: Unpack[StorySettings]) -> Refusal | None:
        return self._ask(e.SettingsSaved(config=_changed(self.queue.config, changes)))

    # Time, and the host's moods.

    def pass_minutes(self, minutes: int) -> None:
        self.world.pass_time(minutes * MINUTE)
        self.catch_up()

    def pass_hours(self, hours: int) -> None:
        self.pass_minutes(60 * hours)

    def wake_at(self) -> Instant | None:
        """When the queue wants to be asked again."""
        return decide(self.queue, (), self.world.now).wake_at

    def pass_until(self, instant: Instant) -> None:
        self.world.pass_time(instant - self.world.now)
        self.catch_up()

    def lose_host(self) -> None:
        self._tell(e.HostLost())

    def find_host(self) -> None:
        self._tell(e.HostFound())

    def refuse_to_merge(self, number: int) -> None:
        self.world.host.refusing.add(PrNumber(number))

    def refuse_the_push(self, words: str) -> None:
        """The landing whose push was withheld is refused, for no pull request's sake."""
        self._tell(e.LandingRefused(landing=self._landing_number(), words=words))

    def lose_test_branch(self, *tested: int) -> None:
        """Somebody deletes the branch of the run that verified what is landing."""
        for run in self.queue.runs.values():
            if _numbers(run.tested) == tested:
                self.world.repository.refs.pop(run.id, None)

    # What the queue's hands do.

    def withhold(self, *kinds: type[t.Task]) -> None:
        """From now on this kind of work is left undone."""
        self._withheld = kinds

    def withhold_landings(self) -> None:
        self.withhold(t.ReadPulls, t.ComposeLanding, t.Land)

    def catch_up(self) -> None:
        """Do what is outstanding until nothing is, or nothing changes any more."""
        for _ in range(PATIENCE):
            if not any(self._perform(task) for task in self._outstanding()):
                return
        raise AssertionError(f"the work never ends: {self.picture()}")

    def stop_withholding(self) -> None:
        self._withheld = ()
        self.catch_up()

    def perform_and_lose_the_answer(self, kind: type[t.Task]) -> None:
        """It is done at the host, and the queue never hears of it: a crash, or a broken line."""
        self._do_at_host(next(task for task in work(self.queue) if isinstance(task, kind)))

    def outstanding(self, kind: type[t.Task]) -> int:
        return sum(isinstance(task, kind) for task in work(self.queue))

    # What there is to see.

    @property
    def queue(self) -> Queue:
        return self.world.queue

    def picture(self) -> str:
        return picture(self.queue)

    def queue_state(self) -> str:
        return self.queue.state

    def state(self, number: int) -> str:
        return self.submission(number).state

    def states(self, *numbers: int) -> tuple[str, ...]:
        return tuple(self.state(number) for number in numbers)

    def reason(self, number: int) -> str:
        """Why it came to be in the state that it is in."""
        return self.submission(number).reason

    def words(self, number: int) -> str:
        return self.submission(number).words

    def failed_upon(self, number: int) -> Numbers:
        """Those that it was tested upon when it failed."""
        return self.submission(number).upon

    def waiting(self, number: int) -> str:
        return self._explained(number).reason

    def waiting_for(self, number: int) -> Numbers:
        return self._explained(number).prs

    def missing_checks(self, number: int) -> tuple[str, ...]:
        return self._explained(number).checks

    def past(self, number: int) -> tuple[str, ...]:
        """Every state that it has been in, oldest first."""
        return tuple(entry.to for entry in self.world.journal if entry.number == number)

    def reasons(self, number: int) -> tuple[str, ...]:
        """The reason of every change, oldest first."""
        return tuple(entry.reason for entry in self.world.journal if entry.number == number)

    def runs(self) -> tuple[Numbers, ...]:
        """The stacks of the runs of the line in progress, in the order in which they began."""
        return self._stacks(RunKind.LINE)

    def batches(self) -> tuple[Numbers, ...]:
        """The line, batch behind batch."""
        return tuple(
            tuple(int(self.queue.submissions[ticket].number) for ticket in batch.tickets)
            for batch in self.queue.line.batches
        )

    def dependent_prs(self, number: int) -> Numbers:
        """Those in the stack of the run in progress with it that this run does not test."""
        return _numbers(self.run_of(number).beneath)

    def probes(self) -> tuple[Numbers, ...]:
        """The stacks of the bisections' runs in progress."""
        return self._stacks(RunKind.BISECTION)

    def bare_runs(self) -> int:
        return len(self._stacks(RunKind.BARE))

    def shows_bare_run(self, number: int) -> bool:
        """Whether the run that is shown for it tests the target itself."""
        shown = shown_run(self.queue, self.submission(number))
        return shown is not None and self.queue.runs[shown].kind is RunKind.BARE

    def merged(self) -> Numbers:
        """In landing order."""
        return tuple(entry.number for entry in self.world.journal if entry.to == "merged")

    def landings(self) -> tuple[Numbers, ...]:
        """The pull requests of every update that the queue made to the target."""
        return tuple(self._updates)

    def submission(self, number: int) -> Submission:
        live = self.queue.submission_of(PrNumber(number))
        return live if live is not None else self.world.ended[PrNumber(number)]

    # How it is told.

    def _explained(self, number: int) -> Waiting:
        return explain(self.queue, self.queue.submissions[self.queue.tickets[PrNumber(number)]])

    def _pull(self, number: int) -> PullRequest:
        return self.world.host.pulls[PrNumber(number)]

    def _change(self, number: int, **changes: object) -> None:
        self.change_unheard(number, **changes)
        self.touch(number)

    def _tell(self, *events: e.Event) -> Decision:
        """A second passes with every piece of news, so that before and after are never the same instant."""
        self.world.now = Instant(self.world.now + SECOND)
        decision = self.world.tell(*events)
        self.catch_up()
        return decision

    def _ask(self, request: e.Event) -> Refusal | None:
        return self._tell(request).refusals.get(0)

    def _report(self, runs: Collection[Run], state: CheckState) -> None:
        for run in runs:
            self.world.checks.results[run.tip] = dict.fromkeys(run.required, state)
        turn = self.queue.counters.turns
        self._tell(*(self.world.host.look_at_checks(run.id, turn) for run in runs))

    def _in_progress(self, tested: Numbers, upon: Numbers | None) -> Run:
        wanted = [
            run
            for run in self.world.runs_in_progress()
            if (_numbers(run.tested) == tested if upon is None else _numbers(run.stack) == upon)
        ]
        assert len(wanted) == 1, f"{len(wanted)} runs of {tested or upon}: {self.picture()}"
        return wanted[0]

    def _stacks(self, kind: RunKind) -> tuple[Numbers, ...]:
        return tuple(_numbers(run.stack) for run in self.world.runs_in_progress() if run.kind is kind)

    def _landing_number(self) -> int:
        assert self.queue.landing is not None
        return self.queue.landing.number

    def _outstanding(self) -> list[t.Task]:
        return [task for task in work(self.queue) if not isinstance(task, self._withheld)]

    def _perform(self, task: t.Task) -> bool:
        """Whether it changed anything that the queue knows."""
        before = self.queue
        self.world.tell(self._do_at_host(task))
        return self.queue is not before

    def _do_at_host(self, task: t.Task) -> e.Event:
        tip = self.tip()
        event = self.world.host.perform(task, self.queue.counters.turns)
        if isinstance(task, t.Land) and self.tip() != tip:
            self._note_update(task, event)
        return event

    def _check_laws(self, *_: object) -> None:
        again = decide(self.queue, (), self.world.now)
        assert again.queue is self.queue, "deciding again without news changed something"
        for submission in self.queue.submissions.values():
            waiting = explain(self.queue, submission)
            assert waiting.prs or waiting.reason not in FOR_OTHERS, (
                f"{submission.number} waits for nobody in particular"
            )

    def _note_update(self, task: t.Land, event: e.Event) -> None:
        numbers = tuple(int(member.number) for member in task.members)
        if task.method is LandingMethod.TESTED_COMMIT:
            self._updates.append(numbers)
        elif isinstance(event, e.LandingSucceeded | e.LandingMissed | e.LandingRefused):
            self._updates.extend((number,) for number in numbers[: len(event.steps)])


def _changed(config: Config, settings: StorySettings) -> Config:
    changes: dict[str, object] = {**settings}
    size = changes.pop("batch", None)
    if size is not None:
        changes.update(batch=True, batching_min_size=size)
    return replace(config, **changes)


def _numbers(members: tuple[Member, ...]) -> Numbers:
    return tuple(int(member.number) for member in members)
