"""How a queue goes on if this and that is true: the production engine decides, nobody comes, and no host takes time."""

from collections.abc import Mapping
from contextlib import suppress
from heapq import heappop, heappush

from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain.config import DirectMergeMode
from mergeyard.domain.ids import Ticket
from mergeyard.domain.instants import Instant, later
from mergeyard.domain.queue import Queue
from mergeyard.domain.states import Mergeability, RunStatus
from mergeyard.sim.foretelling.beliefs import Beliefs
from mergeyard.sim.racing.driver import Driver
from mergeyard.sim.racing.light_host import LightHost
from mergeyard.sim.racing.policy import Number, Orders, Trial
from mergeyard.sim.racing.race import Diverged

TURNS_FOR_EACH = 100
"""Results and waits need a few turns for each pull request; whoever is not decided after so many never is."""


class Course:
    def __init__(self, queue: Queue, now: Instant, beliefs: Beliefs) -> None:
        self._beliefs = beliefs
        self._now = now
        self._tickets: dict[Number, Ticket] = {number: queue.tickets[number] for number in queue.tickets}
        self._undecided = set(self._tickets)
        self._merged: dict[Ticket, Instant] = {}
        self._ends: list[tuple[Instant, int, Trial]] = []
        self._begun = 0
        self._driver = Driver(_without_direct_merges(queue), _host(queue))
        for run in queue.runs.values():
            if run.status is RunStatus.IN_PROGRESS:
                self._begin(self._driver.watch(run, run.chain), beliefs.left(run, now))

    def merges(self) -> Mapping[Ticket, Instant]:
        """When each of those merges that do. Of whoever cannot be decided nobody knows."""
        with suppress(Diverged):
            self._go_on()
        return self._merged

    def _go_on(self) -> None:
        self._take_turn(())
        for _ in range(TURNS_FOR_EACH * len(self._tickets)):
            coming = self._next_instant()
            if coming is None or not self._undecided:
                return
            self._now = max(self._now, coming)
            self._take_turn(self._results())

    def _next_instant(self) -> Instant | None:
        """Runs that were stopped meanwhile say nothing any more."""
        while self._ends and self._ends[0][2] not in self._driver.runs:
            heappop(self._ends)
        ends = [at for at, _, _ in self._ends[:1]]
        asked_for = [] if self._driver.wake_at is None else [Instant(self._driver.wake_at)]
        return min(ends + asked_for, default=None)

    def _take_turn(self, events: tuple[e.Event, ...]) -> None:
        orders = Orders()
        self._driver.take_turns(events, self._now, orders)
        for verdict in orders.decided:
            self._undecided.discard(verdict.number)
            if verdict.merged:
                self._merged[self._tickets[verdict.number]] = self._now
        for trial in orders.start:
            self._begin(trial, self._beliefs.length(self._driver.plans[trial]))

    def _begin(self, trial: Trial, length: int) -> None:
        self._begun += 1
        heappush(self._ends, (later(self._now, length), self._begun, trial))

    def _results(self) -> tuple[e.Event, ...]:
        ended = list[Trial]()
        while self._ends and self._ends[0][0] <= self._now:
            ended.append(heappop(self._ends)[2])
        return tuple(
            self._driver.result(trial, green=not self._is_red(trial)) for trial in ended if trial in self._driver.runs
        )

    def _is_red(self, trial: Trial) -> bool:
        """What has merged is good enough, whoever it was."""
        here = self._driver.queue.submissions
        stack = self._driver.plans[trial].stack
        return any(member.ticket in self._beliefs.bad and member.ticket in here for member in stack)


def _without_direct_merges(queue: Queue) -> Queue:
    """Nobody's head is examined here, so that everybody needs a run."""
    return replace(queue, config=replace(queue.config, direct_merge_mode=DirectMergeMode.OFF))


def _host(queue: Queue) -> LightHost:
    """Whoever is admitted was mergeable, also where the host does not know it at the moment."""
    host = LightHost(queue.target.tip, queue.target.required, prefix="foretold-")
    for stay in queue.submissions.values():
        host.pulls[stay.number] = replace(stay.pull, mergeability=Mergeability.MERGEABLE)
    return host
