"""Replays a history with the production engine, event by event, until every arrival is concluded.

Authors act as recorded: pull requests are submitted at the recorded times, and those removed manually are removed after
the same time, unless they are decided before. A resubmission follows after the same pause, unless the pull request has
merged. Arrivals that concluded without a test result are never tested.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from heapq import heappop, heappush
from itertools import count

from msgspec import Struct

from mergeyard.domain import events as e
from mergeyard.domain.ids import PullRequestNumber, Sha
from mergeyard.domain.pull_requests import ALL_TARGETS, PullRequest
from mergeyard.domain.states import Mergeability, QueueState
from mergeyard.domain.timestamps import Instant, later
from mergeyard.simulation import engine_driver
from mergeyard.simulation.history import ArrivalIndex, ConfigChange, EndState, History, StateChange
from mergeyard.simulation.outcomes import ArrivalStack, OutcomeModel

MAX_DECISIONS_PER_ARRIVAL = 200
"""Each arrival needs a few decisions for its results and waits; a replay that needs so many does not end."""


class ReplayedOutcome(Struct, frozen=True):
    submitted_at: Instant
    ended_at: Instant
    end_state: EndState


class ReplayedRun(Struct):
    tested_arrivals: tuple[ArrivalIndex, ...]
    started_at: Instant
    ended_at: Instant
    is_recorded: bool
    """The same run is recorded."""


class ReplayResult(Struct, frozen=True, kw_only=True):
    outcomes: Mapping[ArrivalIndex, ReplayedOutcome]
    """Without resubmissions that were not needed."""
    runs: tuple[ReplayedRun, ...]


ScheduledAction = Callable[[Instant], e.Event | None]


class Replay:
    def __init__(self, history: History, truth: OutcomeModel, settings: Sequence[ConfigChange]) -> None:
        self.history = history
        self.truth = truth
        self.driver = engine_driver.start_driver(settings[0].config)
        self.scheduled: list[tuple[Instant, int, ScheduledAction]] = []
        self.sequence = count()
        self.external_push_at: Instant | None = None
        self.submitted_at: dict[ArrivalIndex, Instant] = {}
        self.cancelled = set[ArrivalIndex]()
        self.outcomes: dict[ArrivalIndex, ReplayedOutcome] = {}
        self.merged: dict[ArrivalIndex, int] = {}
        """Merge positions."""
        self.repeats = Counter[tuple[ArrivalStack, int]]()
        self.runs: dict[engine_driver.SimulatedRun, ReplayedRun] = {}
        self.next_submission = {
            arrival.previous: index for index, arrival in enumerate(history.arrivals) if arrival.previous is not None
        }
        self._schedule_recorded_events(settings)

    def run(self) -> ReplayResult:
        remaining_decisions = MAX_DECISIONS_PER_ARRIVAL * (len(self.history.arrivals) + 1)
        while times := self._next_times():
            remaining_decisions -= 1
            if remaining_decisions < 0:
                raise engine_driver.SimulationDiverged("the replay does not end")
            self._decide_at(min(times))
        if len(self.outcomes) < len(self.submitted_at):
            raise engine_driver.SimulationDiverged(
                f"{len(self.submitted_at) - len(self.outcomes)} pull requests would never be decided"
            )
        return ReplayResult(outcomes=self.outcomes, runs=tuple(self.runs.values()))

    def _schedule_recorded_events(self, settings: Sequence[ConfigChange]) -> None:
        """Changes of settings and state come before arrivals of the same time. A queue left paused resumes at the
        end."""
        for change in settings[1:]:
            self._schedule(change.at, lambda _, config=change.config: e.SettingsSaved(config=config))
        for change in (*self.history.state_changes, StateChange(self.history.until, QueueState.RUNNING)):
            self._schedule(change.at, lambda _, state=change.state: e.StateRequested(state=state))
        for pushed_at in self.history.external_pushes:
            self._schedule(pushed_at, lambda _: self.driver.push_externally())
        for index, arrival in enumerate(self.history.arrivals):
            if arrival.previous is None:
                self._schedule(arrival.admitted_at, partial(self._submit, index))

    def _schedule(self, at: Instant, action: ScheduledAction) -> None:
        heappush(self.scheduled, (at, next(self.sequence), action))

    def _next_times(self) -> list[Instant]:
        wake_times = (self.driver.wake_at, self.external_push_at)
        return [at for at, _, _ in self.scheduled[:1]] + [Instant(at) for at in wake_times if at is not None]

    def _decide_at(self, now: Instant) -> None:
        events = list[e.Event]()
        while self.scheduled and self.scheduled[0][0] <= now:
            event = heappop(self.scheduled)[2](now)
            events += () if event is None else (event,)
        if self.external_push_at is not None and self.external_push_at <= now:
            events.append(self.driver.push_externally())
        is_wake_due = self.driver.wake_at is not None and self.driver.wake_at <= now
        if events or is_wake_due:
            actions = engine_driver.Actions()
            self.driver.decide_until_idle(events, now, actions)
            self._apply_actions(actions, now)
            self.external_push_at = later(now, engine_driver.STALL_TIMEOUT_MS) if self.driver.is_stalled else None

    def _submit(self, index: ArrivalIndex, now: Instant) -> e.Event:
        arrival = self.history.arrivals[index]
        pull_request = PullRequest(
            number=PullRequestNumber(index),
            head=_head(index),
            base_branch=engine_driver.TARGET_BRANCH,
            author=arrival.author,
            draft=arrival.end_state is EndState.UNTESTED,
            mergeability=Mergeability.MERGEABLE,
            contained_heads={PullRequestNumber(other): _head(other) for other in arrival.stacked_on},
        )
        self.driver.host.pull_requests[pull_request.number] = pull_request
        self.submitted_at[index] = now
        if arrival.end_state in (EndState.REMOVED, EndState.UNTESTED):
            self._schedule(later(now, arrival.duration_ms), partial(self._cancel, index))
        return e.PullRequestSubmitted(
            pull_request=pull_request,
            observed_at_revision=self.driver.revision,
            priority=arrival.priority,
            no_batch=arrival.no_batch,
            impacted_targets=ALL_TARGETS if arrival.impacted_targets is None else arrival.impacted_targets,
        )

    def _cancel(self, index: ArrivalIndex, _: Instant) -> e.Event | None:
        if index in self.outcomes:
            return None
        self.cancelled.add(index)
        return e.CancelRequested(number=PullRequestNumber(index))

    def _finish_run(self, run: engine_driver.SimulatedRun, passes: bool, _: Instant) -> e.Event | None:
        """A run stopped meanwhile has no result."""
        return self.driver.build_result(run, passes) if run in self.driver.active_run_ids else None

    def _apply_actions(self, actions: engine_driver.Actions, now: Instant) -> None:
        for decision in actions.decisions:
            self._conclude(decision.number, decision.merged, now)
        for run in actions.runs_to_start:
            self._start_run(run, now)
        for run in actions.runs_to_stop:
            self.runs[run].ended_at = now

    def _conclude(self, index: ArrivalIndex, merged: bool, now: Instant) -> None:
        end_if_not_merged = self.history.arrivals[index].end_state if index in self.cancelled else EndState.FAILED
        end = EndState.MERGED if merged else end_if_not_merged
        self.outcomes[index] = ReplayedOutcome(self.submitted_at[index], now, end)
        if merged:
            self.merged[index] = len(self.merged)
        elif index in self.next_submission:
            next_index = self.next_submission[index]
            pause = self.history.arrivals[next_index].admitted_at - self.history.arrivals[index].ended_at
            self._schedule(later(now, pause), partial(self._submit, next_index))

    def _start_run(self, run: engine_driver.SimulatedRun, now: Instant) -> None:
        planned_run = self.driver.planned_runs[run]
        stack = tuple(member.number for member in planned_run.stack)
        repeat = self.repeats[stack, planned_run.tested_count]
        self.repeats[stack, planned_run.tested_count] += 1
        ends_at = later(now, self.truth.duration_ms(stack, planned_run.tested_count, repeat))
        base = len(self.merged) if run.base_merge_count is None else run.base_merge_count
        fails_by_rule = self.truth.rules.predicts_failure(run.stack, lambda other: self.merged.get(other, base) < base)
        passes = self.truth.passes(stack, planned_run.tested_count, repeat, by_rule=not fails_by_rule)
        tested = stack[len(stack) - planned_run.tested_count :]
        self.runs[run] = ReplayedRun(
            tested, now, ends_at, self.truth.is_recorded(stack, planned_run.tested_count, repeat)
        )
        self._schedule(ends_at, partial(self._finish_run, run, passes))


def _head(index: ArrivalIndex) -> Sha:
    return Sha(f"h{index}")
