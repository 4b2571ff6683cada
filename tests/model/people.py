"""People: they submit, cancel, push, close, pause, and do it all at the worst moment."""

from collections.abc import Callable
from random import Random
from typing import Any

from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain.config import Config, DirectMergeMode, LandingMethod, Mode, OptimizationMode, Speculation
from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.instants import HOUR, Instant
from mergeyard.domain.required import Required
from mergeyard.domain.states import Mergeability, QueueState
from mergeyard.domain.targets import ALL, NOTHING, Targets, named
from mergeyard.sim.repository import Content
from mergeyard.sim.world import TARGET, World

AREAS = ("ui", "api", "docs", "build")
MOST_PRS = 14

Telling = Callable[..., None]


class People:
    def __init__(self, world: World, rng: Random, spread_news: Telling) -> None:
        self.world = world
        self.rng = rng
        self.spread_news = spread_news
        self.opened = 0
        self.touched_the_target = False
        self.removed: set[Sha] = set()
        """What somebody took off the target after the queue had seen it there, and nobody put back."""
        self.ever_removed: set[Sha] = set()
        self.cancelled: set[int] = set()
        """The stays whose cancel was answered with yes."""

    def act(self) -> None:
        name = self.rng.choices(tuple(HABITS), tuple(HABITS.values()))[0]
        getattr(self, name)()

    # With the queue.

    def submit_a_new_one(self) -> None:
        if self.opened < MOST_PRS:
            self.opened += 1
            self._open(PrNumber(self.opened))
            self._submit(PrNumber(self.opened))

    def submit_again(self) -> None:
        host = self.world.host
        idle = [
            number for number, pull in host.pulls.items() if number not in self.world.queue.tickets and pull.is_open
        ]
        idle = [number for number in idle if not host.look(number).contained]
        if idle:
            self._submit(self.rng.choice(idle))

    def cancel(self) -> None:
        for number in self._somebody():
            ticket = self.world.queue.tickets[number]
            decision = self.world.tell(e.CancelRequested(number=number, actor="somebody"))
            if not decision.refusals:
                self.cancelled.add(ticket)

    def restart(self) -> None:
        for number in self._somebody():
            self.world.tell(e.RestartRequested(number=number, actor="somebody"))

    def prioritise(self) -> None:
        for number in self._somebody():
            self.world.tell(self.world.submission(number, priority=self.rng.choice((0, 1, 10, 100, 255))))

    def upload_targets(self) -> None:
        for number in self._somebody():
            head, targets = self.world.host.pulls[number].head, self._targets(number)
            if targets is not None:
                self.world.tell(e.TargetsUploaded(number=number, head=head, targets=targets))

    def change_the_state(self) -> None:
        states = (QueueState.RUNNING, QueueState.RUNNING, QueueState.PAUSED, QueueState.DRAINING)
        self.world.tell(e.StateRequested(state=self.rng.choice(states), actor="somebody"))

    def change_a_setting(self) -> None:
        name = self.rng.choice(CHANGEABLE)
        changed = {name: getattr(draw_config(self.rng), name)}
        self.world.tell(e.SettingsSaved(config=replace(self.world.queue.config, **changed), actor="somebody"))

    # At the host.

    def push(self) -> None:
        for number in self._somebody_open():
            pull = self.world.host.pulls[number]
            files = {**self.world.repository.commits[pull.head].files, f"more{number}": f"push{self.world.now}"}
            self.change_pull(number, head=self.world.repository.commit((pull.head,), files, "pushed"))
            self.spread_news(e.PullTouched(number=number))

    def change_a_pull(self) -> None:
        for number in self._somebody_open():
            self.change_pull(number, **self.rng.choice(CHANGES))
            self.spread_news(e.PullTouched(number=number))

    def merge_by_hand(self) -> None:
        for number in self._somebody_open():
            if self.world.host.look(number).mergeability is Mergeability.MERGEABLE:
                tip, head = self.world.host.tip, self.world.host.pulls[number].head
                files = self.world.repository.merged_files(tip, head)
                self._move_target(self.world.repository.commit((tip, head), files, "by hand"))
                self.change_pull(number, is_open=False, merged_into=TARGET)
                self.spread_news(e.PullTouched(number=number), e.TargetTouched())

    def push_to_the_target(self) -> None:
        tip = self.world.host.tip
        files = {**self.world.repository.commits[tip].files, f"foreign{self.world.now}": "x"}
        self._move_target(self.world.repository.commit((tip,), files, "a foreign push"))
        self.spread_news(e.TargetTouched())

    def rewind_the_target(self) -> None:
        parents = self.world.repository.commits[self.world.host.tip].parents
        if parents:
            self._move_target(parents[0])
            self.spread_news(e.TargetTouched())

    def ask_for_other_statuses(self) -> None:
        self.world.host.required = Required(self.rng.choice((("unit",), ("unit", "lint"))))
        self.spread_news(e.TargetTouched())

    def forbid_a_merge(self) -> None:
        for number in self._somebody():
            self.world.host.refusing.add(number)

    def report_on_a_head(self) -> None:
        for number in self._somebody():
            self.world.checks.report(self.world.host.pulls[number].head, ("unit", "lint"))

    def go_home(self) -> None:
        self.world.now = Instant(self.world.now + self.rng.randrange(1, 9) * HOUR)

    def change_pull(self, number: PrNumber, **changes: Any) -> None:
        self.world.host.pulls[number] = replace(self.world.host.pulls[number], **changes)

    # Their work.

    def _open(self, number: PrNumber) -> None:
        """Mostly its own file; sometimes one that others change too, sometimes upon another's head."""
        content = f"pr{number}"
        shared = self.rng.random() < 0.12
        self.world.open(number, {"shared" if shared else f"file{number}": content}, upon=self._branch_point())
        if self.rng.random() < 0.15:
            self.world.truth.bad.add(content)
        if number > 1 and self.rng.random() < 0.1:
            self.world.truth.bad_together.add(frozenset({content, f"pr{self.rng.randrange(1, number)}"}))
        if self.rng.random() < 0.15:
            self.change_pull(number, **self.rng.choice(CHANGES[1:]))
        if self.rng.random() < 0.3:
            self.world.checks.report(self.world.host.pulls[number].head, ("unit", "lint"))

    def _branch_point(self) -> Sha | None:
        others = [pull.head for pull in self.world.host.pulls.values() if pull.is_open]
        if others and self.rng.random() < 0.06:
            return self.rng.choice(others)
        return self.world.repository.root if self.rng.random() < 0.1 else None

    def _submit(self, number: PrNumber) -> None:
        event = self.world.submission(
            number,
            priority=self.rng.choice((None, None, None, 0, 10, 200)),
            no_batch=self.rng.choice((None, None, True)),
            forced=self.rng.choice((None, None, True)),
            targets=self._targets(number),
        )
        self.world.tell(event)

    def _targets(self, number: PrNumber) -> Targets | None:
        """Truthful: whoever breaks in company, or repairs the base, or brings one who does, shares with everybody."""
        if self.rng.random() < 0.05:
            return None
        entangled = {content for pair in self.world.truth.bad_together for content in pair}
        entangled.update(self.world.truth.repairs.values())
        if not entangled.isdisjoint(self._brought_by(number)) or self.rng.random() < 0.08:
            return ALL
        if self.rng.random() < 0.06:
            return NOTHING
        return named(*self.rng.sample(AREAS, self.rng.choice((1, 1, 2))))

    def _brought_by(self, number: PrNumber) -> set[Content]:
        commits = self.world.repository.commits
        head, tip = commits[self.world.host.pulls[number].head], commits[self.world.host.tip]
        return {f"pr{number}", *head.files.values()}.difference(tip.files.values())

    def _somebody(self) -> list[PrNumber]:
        live = list(self.world.queue.tickets)
        return [self.rng.choice(live)] if live else []

    def _somebody_open(self) -> list[PrNumber]:
        return [number for number in self._somebody() if self.world.host.pulls[number].is_open]

    def _move_target(self, to: Sha) -> None:
        """Whoever moves it may take commits away that the queue has seen, or bring some back."""
        ancestors = self.world.repository.ancestors
        known = self.world.queue.target.tip
        if known is not None:
            self.removed |= ancestors(known) & ancestors(self.world.host.tip) - ancestors(to)
        self.ever_removed |= ancestors(self.world.host.tip) - ancestors(to)
        self.removed -= ancestors(to)
        self.world.repository.refs[TARGET] = to
        self.touched_the_target = True


def draw_config(rng: Random) -> Config:
    return Config(
        mode=rng.choice(tuple(Mode)),
        concurrency=rng.choice((1, 2, 3, 5)),
        bisection_concurrency=rng.choice((1, 2, 3)),
        batch=rng.random() < 0.5,
        batching_min_size=rng.choice((2, 3, 4)),
        batching_max_wait_time_minutes=rng.choice((0, 5, 10)),
        can_optimistically_merge=rng.random() < 0.35,
        pending_failure_depth=rng.choice((0, 1, 2)),
        optimization_mode=rng.choice(tuple(OptimizationMode)),
        testing_timeout_minutes=rng.choice((30, 300)),
        test_retries=rng.choice((0, 0, 1, 2)),
        required_statuses=rng.choice((None, None, ("unit",), ("unit", "lint"))),
        landing=LandingMethod.PROVIDER_MERGE if rng.random() < 0.15 else LandingMethod.TESTED_COMMIT,
        direct_merge_mode=rng.choice((DirectMergeMode.OFF, DirectMergeMode.ALWAYS)),
        not_ready_timeout_hours=rng.choice((0, 24, 6)),
        speculation=rng.choice(tuple(Speculation)),
    )


CHANGEABLE = (
    "mode",
    "concurrency",
    "bisection_concurrency",
    "batch",
    "batching_min_size",
    "can_optimistically_merge",
    "pending_failure_depth",
    "optimization_mode",
    "speculation",
    "test_retries",
    "required_statuses",
    "landing",
    "direct_merge_mode",
)

CHANGES: tuple[dict[str, Any], ...] = (
    {"is_open": False},
    {"draft": True},
    {"draft": False, "base": TARGET},
    {"base": "other"},
    {"mergeability": Mergeability.UNKNOWN},
    {"mergeability": Mergeability.MERGEABLE},
)

HABITS = {
    "submit_a_new_one": 40,
    "submit_again": 6,
    "cancel": 5,
    "restart": 4,
    "prioritise": 5,
    "upload_targets": 3,
    "change_the_state": 4,
    "change_a_setting": 5,
    "push": 3,
    "change_a_pull": 6,
    "merge_by_hand": 2,
    "push_to_the_target": 2,
    "rewind_the_target": 1,
    "ask_for_other_statuses": 2,
    "forbid_a_merge": 1,
    "report_on_a_head": 4,
    "go_home": 2,
}
"""What people do, and how often."""
