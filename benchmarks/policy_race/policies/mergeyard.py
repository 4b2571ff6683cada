"""Mergeyard itself: the production engine on a host that performs every task immediately.

Three configurations race. The chain and best-first speculation use parallel mode, with the parts as impacted targets.
Batches use parallel mode too, because in single mode one failed batch would restart all after it.
"""

from msgspec.structs import replace

from benchmarks.policy_race.policy import Change, Observations
from mergeyard.domain import events as e
from mergeyard.domain.config import Config, Mode, OptimizationMode, Speculation
from mergeyard.domain.ids import PullRequestNumber, Sha
from mergeyard.domain.pull_requests import PullRequest, impacted_targets_from_names
from mergeyard.domain.states import Mergeability
from mergeyard.domain.timestamps import SECOND, Instant
from mergeyard.engine.decide import decide
from mergeyard.simulation.engine_driver import STALL_TIMEOUT_MS, TARGET_BRANCH, Actions, DecideFunction, start_driver

DECISION_INTERVAL_MS = 5 * SECOND
"""Events of this interval go into one decision, as when the service is busy; this never speeds up a decision."""

CHAIN = Config(mode=Mode.PARALLEL)
BEST_FIRST = Config(mode=Mode.PARALLEL, speculation=Speculation.BEST_FIRST, can_optimistically_merge=True)
"""A passed run also clears the changes ahead in its stack, so that no change waits for the slowest run ahead."""
BATCH = replace(
    BEST_FIRST,
    batch=True,
    batching_min_size=100,
    batching_max_wait_time_minutes=20,
    optimization_mode=OptimizationMode.BISECTION_SKIP_REDUNDANT_TESTS,
)
"""Batches should be full after the maximum wait and not before: the engine looks for members among four times as
many."""


class Mergeyard:
    def __init__(self, config: Config, workers: int, engine: DecideFunction = decide) -> None:
        self.driver = start_driver(_fit_workers(config, workers), engine)
        self.events: list[e.Event] = []
        self.decide_at: int | None = None
        self.external_push_at: int | None = None

    def react(self, observations: Observations, now: int) -> Actions:
        actions = Actions()
        self._collect_events(observations, now)
        if min(self._wake_times(), default=now + 1) <= now:
            events, self.events, self.decide_at = self.events, [], None
            self.driver.decide_until_idle(events, Instant(now), actions)
            self.external_push_at = now + STALL_TIMEOUT_MS if self.driver.is_stalled else None
        actions.wake_at = min(self._wake_times(), default=None)
        return actions

    def _collect_events(self, observations: Observations, now: int) -> None:
        self.events += map(self._build_submission, observations.arrived)
        self.events += (self.driver.build_result(run, passed) for run, passed in observations.finished)
        if self.external_push_at is not None and self.external_push_at <= now:
            self.events.append(self.driver.push_externally())
            self.decide_at = now
        elif self.events and self.decide_at is None:
            self.decide_at = now + DECISION_INTERVAL_MS

    def _wake_times(self) -> list[int]:
        times = (self.decide_at, self.driver.wake_at, self.external_push_at)
        return [time for time in times if time is not None]

    def _build_submission(self, change: Change) -> e.Event:
        pull_request = PullRequest(
            number=PullRequestNumber(change.number),
            head=Sha(f"h{change.number}"),
            base_branch=TARGET_BRANCH,
            author=change.author,
            mergeability=Mergeability.MERGEABLE,
        )
        self.driver.host.pull_requests[pull_request.number] = pull_request
        return e.PullRequestSubmitted(
            pull_request=pull_request,
            observed_at_revision=self.driver.revision,
            impacted_targets=impacted_targets_from_names(*map(str, change.parts)),
        )


def _fit_workers(config: Config, workers: int) -> Config:
    """Bisections have their own slots; both kinds together are the workers. Without batches there are no bisections."""
    bisection_slots = max(1, workers // 5) if config.batch else 0
    return replace(config, concurrency=workers - bisection_slots, bisection_concurrency=max(1, bisection_slots))
