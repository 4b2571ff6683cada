"""One seed, one world: a queue with random settings, people who use it, and adapters that misbehave."""

from random import Random

from msgspec import Struct

from mergeyard.domain import events as e
from mergeyard.domain.ids import PullRequestNumber
from mergeyard.domain.pull_requests import ALL_TARGETS
from mergeyard.domain.states import Mergeability, QueueState
from mergeyard.domain.timestamps import MINUTE, Instant
from mergeyard.engine.tasks import pending_tasks
from tests.model.laws import Laws
from tests.model.people import People, draw_config
from tests.support.world.world import TARGET_BRANCH, World


class Faults(Struct, frozen=True):
    tasks_skipped: bool = False
    """Pending tasks are delayed again and again."""
    tasks_repeated: bool = False
    """A task is performed twice, and its result is reported twice."""
    results_lost: bool = False
    """A task is performed, and its result is lost."""
    results_late: bool = False
    """Results arrive in another order, some of them much later."""
    dirty_signals_lost: bool = False
    """Dirty signals are lost; the queue learns of changes at the host only when it reads the host itself."""
    dirty_signals_duplicated: bool = False
    host_outages: bool = False
    mirrors_lost: bool = False
    """Commits that no ref contains are lost."""


OBSTACLE_EVENTS = (
    e.HostUnreachable(),
    e.HostLimiting(until=Instant(0)),
    e.HostLimiting(until=Instant(0), only_waiting=True),
    e.HostRefusing(detail="403"),
    e.HostRefusing(detail="403", number=PullRequestNumber(1)),
    e.ServerFailing(),
    e.HostReachable(),
    e.HostReachable(),
    e.HostReachable(),
)


def draw_faults(rng: Random) -> Faults:
    if rng.random() < 0.2:
        return Faults()
    return Faults(*(rng.random() < 0.35 for _ in Faults.__struct_fields__))


EVENTFUL_STEPS = 35
"""After these steps people do nothing new and no fault happens: the world is fair, and every submission must end."""
RULES_EVERY_WORLDS = 3
"""In one of so many worlds the Git host has rules that require approvals and checks of the head."""
LAST_STEP = 10**6
MAX_ROUNDS = 150


class RandomWorld:
    def __init__(self, seed: int) -> None:
        self.rng = rng = Random(seed)
        self.faults = draw_faults(rng)
        self.flaky = rng.random() < 0.25
        self.fair = False
        self.step = 0
        self.late_results = list[tuple[int, e.Event]]()
        self.world = World(draw_config(rng), base_passed=rng.random() < 0.7, is_flaky=self._flake)
        rules_rng = Random(f"rules {seed}") if seed % RULES_EVERY_WORLDS == 2 else None
        self.people = People(self.world, rng, self._send_dirty_signals, rules_rng)
        if rng.random() < 0.1:
            self._break_the_base()
        self.laws = Laws(self.world, self.people, flaky=self.flaky)
        self.world.listeners.append(self.laws.check_decision)

    def run(self) -> None:
        for self.step in range(EVENTFUL_STEPS):
            for _ in range(self.rng.choice((0, 1, 1, 2))):
                self.people.act()
            self._perform_some_tasks()
            self._checks_report()
            self._toggle_host_reachability()
            self._lose_mirror()
            self._deliver_late_results()
            self.world.now = Instant(self.world.now + self.rng.choice((1, 1000, MINUTE, 7 * MINUTE)))
        self._make_world_fair()
        self._run_until_settled()
        self.laws.check_end()

    # Between the queue and the host.

    def _send_dirty_signals(self, *events: e.Event) -> None:
        if self.faults.dirty_signals_lost and self.rng.random() < 0.6:
            return
        self.world.apply(*events)
        if self.faults.dirty_signals_duplicated:
            self.world.apply(*events)

    def _perform_some_tasks(self) -> None:
        for _ in range(self.rng.randrange(1, 7)):
            tasks = pending_tasks(self.world.queue)
            if not tasks or (self.faults.tasks_skipped and self.rng.random() < 0.4):
                return
            task, revision = self.rng.choice(tasks), self.world.queue.counters.revision
            event = self.world.host.perform_task(task, revision)
            if self.faults.tasks_repeated and self.rng.random() < 0.3:
                event = self.world.host.perform_task(task, revision)
            if not (self.faults.results_lost and self.rng.random() < 0.2):
                self._report(event)

    def _report(self, event: e.Event) -> None:
        if self.faults.results_late and self.rng.random() < 0.3:
            self.late_results.append((self.step + self.rng.randrange(1, 6), event))
            return
        self.world.apply(event)
        if self.faults.tasks_repeated and self.rng.random() < 0.2:
            self.world.apply(event)

    def _checks_report(self) -> None:
        for run in self.world.runs_in_progress():
            if self.rng.random() < 0.35:
                names = self.rng.sample(run.required_statuses, self.rng.randrange(1, len(run.required_statuses) + 1))
                self.world.checks.report(run.tip, names)
                self._report(self.world.host.read_checks(run.id, self.world.queue.counters.revision))

    def _toggle_host_reachability(self) -> None:
        if self.faults.host_outages and self.rng.random() < 0.15:
            self.world.apply(self.rng.choice(OBSTACLE_EVENTS))

    def _lose_mirror(self) -> None:
        if self.faults.mirrors_lost and self.rng.random() < 0.15:
            self.world.host.lose_mirror()
            self.world.apply(e.ProcessingResumed())

    def _deliver_late_results(self) -> None:
        due = [event for step, event in self.late_results if step <= self.step]
        self.late_results = [(step, event) for step, event in self.late_results if step > self.step]
        self.rng.shuffle(due)
        if due:
            self.world.apply(*due)

    def _flake(self) -> bool:
        return self.flaky and not self.fair and self.rng.random() < 0.12

    def _break_the_base(self) -> None:
        self.world.check_rules.failing.add("broken")
        self.world.check_rules.repaired_by["broken"] = f"pr{self.rng.randrange(1, 6)}"
        self.world.push_to_target_branch({"breakage": "broken"})
        self.world.apply(e.TargetBranchDirty())

    # The end.

    def _make_world_fair(self) -> None:
        self.fair, self.step = True, LAST_STEP
        self._deliver_late_results()
        for number, pull_request in self.world.host.pull_requests.items():
            if pull_request.is_open:
                self.people.change_pull_request(
                    number, draft=False, base_branch=TARGET_BRANCH, mergeability=Mergeability.MERGEABLE
                )
        self.people.satisfy_most_rules()
        self.world.apply(e.HostReachable(), e.StateRequested(state=QueueState.RUNNING), e.TargetBranchDirty())
        self.world.apply(*(e.PullRequestDirty(number=number) for number in self.world.queue.submission_by_number))

    def _run_until_settled(self) -> None:
        """Every task is performed as it comes; a queue that paused itself is resumed; time passes."""
        for _ in range(MAX_ROUNDS):
            self._perform_all_tasks()
            self._upload_missing_targets()
            runs = self.world.runs_in_progress()
            if runs:
                self.world.report_checks(runs)
            elif self.world.queue.is_paused:
                self.world.apply(e.StateRequested(state=QueueState.RUNNING))
            elif self._is_settled():
                return
        raise AssertionError("the queue does not settle in a fair world")

    def _perform_all_tasks(self) -> None:
        """All pending tasks at once, so that many events are applied in one decision."""
        for _ in range(MAX_ROUNDS):
            tasks, revision = pending_tasks(self.world.queue), self.world.queue.counters.revision
            if not tasks:
                return
            self.world.apply(*[self.world.host.perform_task(task, revision) for task in tasks])

    def _is_settled(self) -> bool:
        queue = self.world.advance_time(11 * MINUTE).queue
        return not pending_tasks(queue) and not any(run.is_active for run in queue.runs.values())

    def _upload_missing_targets(self) -> None:
        for submission in self.world.queue.submissions.values():
            if submission.impacted_targets is None:
                event = e.ImpactedTargetsUploaded(
                    number=submission.number, head=submission.pull_request.head, impacted_targets=ALL_TARGETS
                )
                self.world.apply(event)
