"""Oracle: knows every outcome beforehand and runs each change once, upon exactly those ahead that will merge.

A merge waits for those ahead that merge and touch a common part; one that breaks with an earlier one waits until that
one has merged. No queue that waits for a run of each change can decide sooner; one in which a green run speaks for all
beneath it can.
"""

from collections import deque

from mergeyard.sim.racing.neighbours import Neighbours
from mergeyard.sim.racing.policy import Change, News, Number, Orders, Trial
from mergeyard.sim.racing.truth import Truth


class Oracle:
    def __init__(self, truth: Truth, workers: int) -> None:
        self.truth = truth
        self.free = workers
        self.lands = set[Number]()
        self.merged = set[Number]()
        self.neighbours = Neighbours()
        self.waiting = deque[Number]()
        self.tested: dict[Number, Trial] = {}

    def move(self, news: News, _: int) -> Orders:
        orders = Orders()
        for change in news.arrived:
            self._foresee(change)
        ready = [trial.stack[-1] for trial, _ in news.finished]
        self.tested.update((trial.stack[-1], trial) for trial, _ in news.finished)
        self.free += len(ready)
        while ready:
            number = ready.pop()
            if number in self.tested and self._may_be_decided(number):
                ready += self._decide(number, orders)
        self._start(orders)
        return orders

    def _foresee(self, change: Change) -> None:
        number = change.number
        conflicts = self.truth.conflicts.get(number, frozenset())
        if number not in self.truth.bad and self.lands.isdisjoint(conflicts):
            self.lands.add(number)
        self.neighbours.add(change)
        self.waiting.append(number)

    def _may_be_decided(self, number: Number) -> bool:
        if number in self.lands:
            return self.lands.isdisjoint(self.neighbours.ahead[number])
        return number in self.truth.bad or not self.merged.isdisjoint(self.truth.conflicts[number])

    def _decide(self, number: Number, orders: Orders) -> list[Number]:
        """Whoever may be decided now, because it waited for this one."""
        trial = self.tested.pop(number)
        if number in self.lands:
            orders.merge(number, trial)
            self.merged.add(number)
        else:
            orders.fail(number, trial)
        return self.neighbours.remove(number)

    def _start(self, orders: Orders) -> None:
        while self.free and self.waiting:
            number = self.waiting.popleft()
            beneath = (other for other in self.neighbours.ahead[number] if other in self.lands)
            orders.start.append(Trial(stack=(*beneath, number)))
            self.free -= 1
