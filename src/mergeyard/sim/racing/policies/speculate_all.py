"""Every future of one line: each change upon every subset of those ahead, breadth-first, as far as workers reach."""

from itertools import combinations

from mergeyard.sim.racing.policy import News, Number, Orders, Trial

Subset = frozenset[Number]


class SpeculateAll:
    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.line: list[Number] = []
        self.trials: dict[tuple[Number, Subset], Trial] = {}
        """By the change, and by which of those undecided ahead of it the run holds."""
        self.results: dict[Trial, bool] = {}

    def move(self, news: News, _: int) -> Orders:
        orders = Orders()
        self.line += [change.number for change in news.arrived]
        self.results.update(news.finished)
        decided = False
        while self.line and (trial := self.trials.get((self.line[0], frozenset()))) in self.results:
            self._decide_first(trial, orders)
            decided = True
        if decided or news.arrived or news.finished:
            self._start(orders)
        return orders

    def _decide_first(self, trial: Trial, orders: Orders) -> None:
        """Half of all futures go on: those that guessed it right."""
        first = self.line.pop(0)
        merged = self.results[trial]
        (orders.merge if merged else orders.fail)(first, trial)
        before, self.trials = self.trials, {}
        for (number, holds), other in before.items():
            if number != first and (first in holds) == merged:
                self.trials[number, holds - {first}] = other
            elif self.results.pop(other, None) is None:
                orders.stop.append(other)

    def _start(self, orders: Orders) -> None:
        free = self.workers - sum(trial not in self.results for trial in self.trials.values())
        for place, number in enumerate(self.line):
            if free <= 0:
                return
            for count in range(place, -1, -1):
                for beneath in combinations(self.line[:place], count):
                    if free > 0 and (number, frozenset(beneath)) not in self.trials:
                        trial = Trial(stack=(*beneath, number))
                        self.trials[number, frozenset(beneath)] = trial
                        orders.start.append(trial)
                        free -= 1
