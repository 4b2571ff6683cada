"""One seed, one world: a queue with random settings, people who do what people do, and hands that misbehave."""

from random import Random

from mergeyard.domain import events as e
from mergeyard.domain.instants import MINUTE, Instant
from mergeyard.domain.states import Mergeability, QueueState
from mergeyard.domain.targets import ALL
from mergeyard.engine.work import work
from mergeyard.sim.world import TARGET, World
from tests.model.faults import draw_faults
from tests.model.laws import Laws
from tests.model.people import People, draw_config

EVENTFUL_STEPS = 35
"""After these nobody does anything new and no fault happens: the world is fair, and everything must end."""
LAST_STEP = 10**6
ROUNDS_OF_REST = 150


class RandomWorld:
    def __init__(self, seed: int) -> None:
        self.rng = rng = Random(seed)
        self.faults = draw_faults(rng)
        self.flaky = rng.random() < 0.25
        self.fair = False
        self.step = 0
        self.late = list[tuple[int, e.Event]]()
        self.world = World(draw_config(rng), proven=rng.random() < 0.7, flakes=self._flake)
        self.people = People(self.world, rng, self._spread_news)
        if rng.random() < 0.1:
            self._break_the_base()
        self.laws = Laws(self.world, self.people, flaky=self.flaky)
        self.world.watchers.append(self.laws.check_turn)

    def run(self) -> None:
        for self.step in range(EVENTFUL_STEPS):
            for _ in range(self.rng.choice((0, 1, 1, 2))):
                self.people.act()
            self._hands_work()
            self._checks_report()
            self._host_comes_and_goes()
            self._another_takes_over()
            self._late_news_arrives()
            self.world.now = Instant(self.world.now + self.rng.choice((1, 1000, MINUTE, 7 * MINUTE)))
        self._become_fair()
        self._come_to_rest()
        self.laws.check_end()

    # Between the queue and the world.

    def _spread_news(self, *events: e.Event) -> None:
        if self.faults.news_lost and self.rng.random() < 0.6:
            return
        self.world.tell(*events)
        if self.faults.news_doubled:
            self.world.tell(*events)

    def _hands_work(self) -> None:
        for _ in range(self.rng.randrange(1, 7)):
            tasks = work(self.world.queue)
            if not tasks or (self.faults.tasks_skipped and self.rng.random() < 0.4):
                return
            task, as_of = self.rng.choice(tasks), self.world.queue.counters.turns
            event = self.world.host.perform(task, as_of)
            if self.faults.tasks_repeated and self.rng.random() < 0.3:
                event = self.world.host.perform(task, as_of)
            if not (self.faults.answers_lost and self.rng.random() < 0.2):
                self._report(event)

    def _report(self, event: e.Event) -> None:
        if self.faults.answers_late and self.rng.random() < 0.3:
            self.late.append((self.step + self.rng.randrange(1, 6), event))
            return
        self.world.tell(event)
        if self.faults.tasks_repeated and self.rng.random() < 0.2:
            self.world.tell(event)

    def _checks_report(self) -> None:
        for run in self.world.runs_in_progress():
            if self.rng.random() < 0.35:
                names = self.rng.sample(run.required, self.rng.randrange(1, len(run.required) + 1))
                self.world.checks.report(run.tip, names)
                self._report(self.world.host.look_at_checks(run.id, self.world.queue.counters.turns))

    def _host_comes_and_goes(self) -> None:
        if self.faults.host_outages and self.rng.random() < 0.15:
            self.world.tell(self.rng.choice((e.HostLost(), e.HostFound())))

    def _another_takes_over(self) -> None:
        if self.faults.mirrors_lost and self.rng.random() < 0.15:
            self.world.host.lose_mirror()
            self.world.tell(e.WatchBegan())

    def _late_news_arrives(self) -> None:
        due = [event for step, event in self.late if step <= self.step]
        self.late = [(step, event) for step, event in self.late if step > self.step]
        self.rng.shuffle(due)
        if due:
            self.world.tell(*due)

    def _flake(self) -> bool:
        return self.flaky and not self.fair and self.rng.random() < 0.12

    def _break_the_base(self) -> None:
        self.world.truth.bad.add("broken")
        self.world.truth.repairs["broken"] = f"pr{self.rng.randrange(1, 6)}"
        self.world.push_to_target({"breakage": "broken"})
        self.world.tell(e.TargetTouched())

    # The end.

    def _become_fair(self) -> None:
        self.fair, self.step = True, LAST_STEP
        self._late_news_arrives()
        for number, pull in self.world.host.pulls.items():
            if pull.is_open:
                self.people.change_pull(number, draft=False, base=TARGET, mergeability=Mergeability.MERGEABLE)
        self.world.tell(e.HostFound(), e.StateRequested(state=QueueState.RUNNING), e.TargetTouched())
        self.world.tell(*(e.PullTouched(number=number) for number in self.world.queue.tickets))

    def _come_to_rest(self) -> None:
        """Everything is done as it comes; somebody resumes what paused itself; time passes."""
        for _ in range(ROUNDS_OF_REST):
            self._do_all_work()
            self._upload_what_is_missing()
            runs = self.world.runs_in_progress()
            if runs:
                self.world.report(runs)
            elif self.world.queue.paused:
                self.world.tell(e.StateRequested(state=QueueState.RUNNING))
            elif self._at_rest():
                return
        raise AssertionError("the queue does not come to rest in a fair world")

    def _do_all_work(self) -> None:
        """All that is outstanding at once, so that many things happen in one turn."""
        for _ in range(ROUNDS_OF_REST):
            tasks, as_of = work(self.world.queue), self.world.queue.counters.turns
            if not tasks:
                return
            self.world.tell(*[self.world.host.perform(task, as_of) for task in tasks])

    def _at_rest(self) -> bool:
        queue = self.world.pass_time(11 * MINUTE).queue
        return not work(queue) and not any(run.active for run in queue.runs.values())

    def _upload_what_is_missing(self) -> None:
        for submission in self.world.queue.submissions.values():
            if submission.targets is None:
                event = e.TargetsUploaded(number=submission.number, head=submission.pull.head, targets=ALL)
                self.world.tell(event)
