"""People: they submit, cancel, push, close and pause at random moments."""

from collections.abc import Callable
from random import Random
from typing import Any

from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain.config import Config, DirectMergeMode, LandingMethod, Mode, OptimizationMode, Speculation
from mergeyard.domain.ids import PullRequestNumber, Sha
from mergeyard.domain.pull_requests import (
    ALL_TARGETS,
    NO_TARGETS,
    ImpactedTargets,
    RequiredStatuses,
    Requirement,
    impacted_targets_from_names,
)
from mergeyard.domain.states import Mergeability, QueueState, Reason
from mergeyard.domain.timestamps import HOUR, Instant
from tests.support.world.repository import Content
from tests.support.world.world import TARGET_BRANCH, World

AREAS = ("ui", "api", "docs", "build")
MAX_PRS = 14

SendEvents = Callable[..., None]


class People:
    def __init__(
        self, world: World, rng: Random, send_dirty_signals: SendEvents, rules_rng: Random | None = None
    ) -> None:
        self.world = world
        self.rng = rng
        self.rules_rng = rules_rng
        """Draws what the rules of the Git host require, and who meets them when; None: it has no rules."""
        self.send_dirty_signals = send_dirty_signals
        self.opened = 0
        self.moved_target_branch = False
        self.removed: set[Sha] = set()
        """Commits removed from the target branch after the queue had observed them there, and not put back since."""
        self.ever_removed: set[Sha] = set()
        self.cancelled: set[int] = set()
        """The submissions whose cancellation was confirmed."""

    def act(self) -> None:
        name = self.rng.choices(tuple(ACTION_WEIGHTS), tuple(ACTION_WEIGHTS.values()))[0]
        getattr(self, name)()
        if self.rules_rng is not None and self.rules_rng.random() < 0.5:
            self._review(self.rules_rng)

    # With the queue.

    def submit_new(self) -> None:
        if self.opened < MAX_PRS:
            self.opened += 1
            self._open(PullRequestNumber(self.opened))
            self._submit(PullRequestNumber(self.opened))

    def submit_again(self) -> None:
        host = self.world.host
        idle = [
            number
            for number, pull_request in host.pull_requests.items()
            if number not in self.world.queue.submission_by_number and pull_request.is_open
        ]
        idle = [number for number in idle if not host.read_pull_request(number).is_in_target_branch]
        if idle:
            self._submit(self.rng.choice(idle))

    def cancel(self) -> None:
        for number in self._choose_submitted():
            submission_id = self.world.queue.submission_by_number[number]
            decision = self.world.apply(e.CancelRequested(number=number, actor="user"))
            if not decision.refusals:
                self.cancelled.add(submission_id)

    def restart(self) -> None:
        for number in self._choose_submitted():
            self.world.apply(e.RestartRequested(number=number, actor="user"))

    def change_priority(self) -> None:
        for number in self._choose_submitted():
            priority = self.rng.choice((0, 1, 10, 100, 255))
            self.world.apply(replace(self.world.build_submission(number, priority=priority), actor="user"))

    def upload_impacted_targets(self) -> None:
        for number in self._choose_submitted():
            head, impacted_targets = self.world.host.pull_requests[number].head, self._choose_impacted_targets(number)
            if impacted_targets is not None:
                self.world.apply(e.ImpactedTargetsUploaded(number=number, head=head, impacted_targets=impacted_targets))

    def change_state(self) -> None:
        states = (QueueState.RUNNING, QueueState.RUNNING, QueueState.PAUSED, QueueState.DRAINING)
        self.world.apply(e.StateRequested(state=self.rng.choice(states), actor="user"))

    def change_setting(self) -> None:
        name = self.rng.choice(CHANGEABLE)
        changed = {name: getattr(draw_config(self.rng), name)}
        self.world.apply(e.SettingsSaved(config=replace(self.world.queue.config, **changed), actor="user"))

    # At the host.

    def push(self) -> None:
        for number in self._choose_submitted_and_open():
            pull_request = self.world.host.pull_requests[number]
            files = {**self.world.repository.commits[pull_request.head].files, f"more{number}": f"push{self.world.now}"}
            self.change_pull_request(number, head=self.world.repository.commit((pull_request.head,), files, "pushed"))
            self.send_dirty_signals(e.PullRequestDirty(number=number))

    def change_some_pull_request(self) -> None:
        for number in self._choose_submitted_and_open():
            self.change_pull_request(number, **self.rng.choice(CHANGES))
            self.send_dirty_signals(e.PullRequestDirty(number=number))

    def merge_by_hand(self) -> None:
        for number in self._choose_submitted_and_open():
            if self.world.host.read_pull_request(number).mergeability is Mergeability.MERGEABLE:
                tip, head = self.world.host.tip, self.world.host.pull_requests[number].head
                files = self.world.repository.merge_files(tip, head)
                self._move_target_branch(self.world.repository.commit((tip, head), files, "by hand"))
                self.change_pull_request(number, is_open=False, merged_into=TARGET_BRANCH)
                self.send_dirty_signals(e.PullRequestDirty(number=number), e.TargetBranchDirty())

    def push_to_target_branch(self) -> None:
        tip = self.world.host.tip
        files = {**self.world.repository.commits[tip].files, f"foreign{self.world.now}": "x"}
        self._move_target_branch(self.world.repository.commit((tip,), files, "a foreign push"))
        self.send_dirty_signals(e.TargetBranchDirty())

    def rewind_target_branch(self) -> None:
        parents = self.world.repository.commits[self.world.host.tip].parents
        if parents:
            self._move_target_branch(parents[0])
            self.send_dirty_signals(e.TargetBranchDirty())

    def change_required_statuses(self) -> None:
        self.world.host.required_statuses = RequiredStatuses(self.rng.choice((("unit",), ("unit", "lint"))))
        self.send_dirty_signals(e.TargetBranchDirty())

    def forbid_merge(self) -> None:
        for number in self._choose_submitted():
            self.world.host.refused_numbers.add(number)

    def report_on_head(self) -> None:
        for number in self._choose_submitted():
            self.world.checks.report(self.world.host.pull_requests[number].head, ("unit", "lint"))

    def let_hours_pass(self) -> None:
        self.world.now = Instant(self.world.now + self.rng.randrange(1, 9) * HOUR)

    def _review(self, rng: Random) -> None:
        """A reviewer approves or withdraws, a check of the head reports or starts again, or a rule becomes readable."""
        queue, pull_requests = self.world.queue, self.world.host.pull_requests
        submitted = [number for number in queue.submission_by_number if pull_requests[number].requirements]
        bisected = [
            number for number in submitted if queue.submission_by_number[number] in queue.bisected_submission_ids
        ]
        if submitted:
            number = rng.choice(bisected or submitted)
            requirements = list(pull_requests[number].requirements)
            at = rng.randrange(len(requirements))
            requirements[at] = replace(requirements[at], given=rng.randrange(requirements[at].needed + 1))
            self.change_pull_request(number, requirements=tuple(requirements))
            self.send_dirty_signals(e.PullRequestDirty(number=number))

    def satisfy_most_rules(self) -> None:
        """What is missing now is given at last, except for a few pull requests."""
        for number, pull_request in self.world.host.pull_requests.items():
            if self.rules_rng is not None and self.rules_rng.random() < 0.8:
                given = (replace(requirement, given=requirement.needed) for requirement in pull_request.requirements)
                self.change_pull_request(number, requirements=tuple(given))

    def change_pull_request(self, number: PullRequestNumber, **changes: Any) -> None:
        self.world.host.pull_requests[number] = replace(self.world.host.pull_requests[number], **changes)

    # Their pull requests.

    def _open(self, number: PullRequestNumber) -> None:
        """Mostly changes its own file; sometimes a shared one, sometimes on top of the head of another pull request."""
        content = f"pr{number}"
        shared = self.rng.random() < 0.12
        self.world.open_pull_request(
            number, {"shared" if shared else f"file{number}": content}, stacked_on=self._branch_point()
        )
        if self.rules_rng is not None:
            self.change_pull_request(number, requirements=draw_requirements(self.rules_rng))
        if self.rng.random() < 0.15:
            self.world.check_rules.failing.add(content)
        if number > 1 and self.rng.random() < 0.1:
            self.world.check_rules.failing_together.add(frozenset({content, f"pr{self.rng.randrange(1, number)}"}))
        if self.rng.random() < 0.15:
            self.change_pull_request(number, **self.rng.choice(CHANGES[1:]))
        if self.rng.random() < 0.3:
            self.world.checks.report(self.world.host.pull_requests[number].head, ("unit", "lint"))

    def _branch_point(self) -> Sha | None:
        others = [pull_request.head for pull_request in self.world.host.pull_requests.values() if pull_request.is_open]
        if others and self.rng.random() < 0.06:
            return self.rng.choice(others)
        return self.world.repository.root if self.rng.random() < 0.1 else None

    def _submit(self, number: PullRequestNumber) -> None:
        event = self.world.build_submission(
            number,
            priority=self.rng.choice((None, None, None, 0, 10, 200)),
            no_batch=self.rng.choice((None, None, True)),
            forced=self.rng.choice((None, None, True)),
            impacted_targets=self._choose_impacted_targets(number),
        )
        self.world.apply(replace(event, actor="user"))

    def _choose_impacted_targets(self, number: PullRequestNumber) -> ImpactedTargets | None:
        """A pull request that fails with another, repairs the base, or contains one that does, always impacts ALL."""
        if self.rng.random() < 0.05:
            return None
        entangled = {content for pair in self.world.check_rules.failing_together for content in pair}
        entangled.update(self.world.check_rules.repaired_by.values())
        if not entangled.isdisjoint(self._changes_of(number)) or self.rng.random() < 0.08:
            return ALL_TARGETS
        if self.rng.random() < 0.06:
            return NO_TARGETS
        return impacted_targets_from_names(*self.rng.sample(AREAS, self.rng.choice((1, 1, 2))))

    def _changes_of(self, number: PullRequestNumber) -> set[Content]:
        commits = self.world.repository.commits
        head, tip = commits[self.world.host.pull_requests[number].head], commits[self.world.host.tip]
        return {f"pr{number}", *head.files.values()}.difference(tip.files.values())

    def _choose_submitted(self) -> list[PullRequestNumber]:
        live = list(self.world.queue.submission_by_number)
        return [self.rng.choice(live)] if live else []

    def _choose_submitted_and_open(self) -> list[PullRequestNumber]:
        return [number for number in self._choose_submitted() if self.world.host.pull_requests[number].is_open]

    def _move_target_branch(self, to: Sha) -> None:
        """The move can remove commits that the queue has observed, or bring some back."""
        ancestors = self.world.repository.ancestors
        known = self.world.queue.target_branch.tip
        if known is not None:
            self.removed |= ancestors(known) & ancestors(self.world.host.tip) - ancestors(to)
        self.ever_removed |= ancestors(self.world.host.tip) - ancestors(to)
        self.removed -= ancestors(to)
        self.world.repository.refs[TARGET_BRANCH] = to
        self.moved_target_branch = True


def draw_requirements(rng: Random) -> tuple[Requirement, ...]:
    """Most are met; some rules cannot be read, and block or not."""
    rules = rng.sample(tuple(NEEDED), rng.randrange(1, len(NEEDED) + 1))
    return tuple(
        Requirement(
            reason=reason,
            needed=NEEDED[reason],
            given=None if reason is Reason.HOST_RULE_UNREADABLE else rng.choice((0, *(NEEDED[reason],) * 4)),
            blocks_if_unknown=rng.random() < 0.3,
        )
        for reason in rules
    )


NEEDED = {
    Reason.HOST_RULE_UNREADABLE: 1,
    Reason.WAITING_FOR_HEAD_CHECKS: 1,
    Reason.WAITING_FOR_REVIEW: 2,
    Reason.CHANGES_REQUESTED: 1,
}
"""How much a rule requires, by the reason of waiting for it."""


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
    {"draft": False, "base_branch": TARGET_BRANCH},
    {"base_branch": "other"},
    {"mergeability": Mergeability.UNKNOWN},
    {"mergeability": Mergeability.MERGEABLE},
)

ACTION_WEIGHTS = {
    "submit_new": 40,
    "submit_again": 6,
    "cancel": 5,
    "restart": 4,
    "change_priority": 5,
    "upload_impacted_targets": 3,
    "change_state": 4,
    "change_setting": 5,
    "push": 3,
    "change_some_pull_request": 6,
    "merge_by_hand": 2,
    "push_to_target_branch": 2,
    "rewind_target_branch": 1,
    "change_required_statuses": 2,
    "forbid_merge": 1,
    "report_on_head": 4,
    "let_hours_pass": 2,
}
"""What people do, and how often."""
