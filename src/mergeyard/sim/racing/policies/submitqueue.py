"""SubmitQueue: in lanes of changes that touch a common part, the runs that are most likely to be needed, best first.

Its predictor is given, not built: it names the outcome of each change and is right in 97 of 100 cases, and it takes
conflicts to be as frequent as they are. Finished runs make it surer. At every event the best runs, as many as there are
workers, are chosen anew, and runs that are not among them any more are stopped.
"""

from heapq import heappop, heappush
from itertools import count

from mergeyard.sim.racing.chances import chance
from mergeyard.sim.racing.neighbours import Neighbours
from mergeyard.sim.racing.policy import News, Number, Orders, Trial
from mergeyard.sim.racing.trace import Trace

ACCURACY = 0.97
SEEN_GREEN = 0.995
"""How sure it is of one that a run has shown to be good: it may still conflict with one ahead."""
PREDICTION = 3
"""The question that chance answers about a change."""

Guess = tuple[Number, frozenset[Number]]
"""A change, and those undecided ahead of it that are taken to merge."""


def predictions(trace: Trace) -> dict[Number, float]:
    """How likely each is to be good: mostly right, and never sure."""
    right = (chance(PREDICTION, trace.seed, change.number) < ACCURACY for change in trace.changes)
    good = (change.number not in trace.truth.bad for change in trace.changes)
    said = (is_good == is_right for is_good, is_right in zip(good, right, strict=True))
    return {number: ACCURACY if says_good else 1 - ACCURACY for number, says_good in enumerate(said)}


class SubmitQueue:
    def __init__(self, workers: int, predicted: dict[Number, float], conflict: float) -> None:
        self.workers = workers
        self.good = predicted
        self.compatible = 1 - conflict
        self.neighbours = Neighbours()
        self.trials: dict[Guess, Trial] = {}
        self.guesses: dict[Trial, Guess] = {}
        self.results: dict[Trial, bool] = {}

    def move(self, news: News, _: int) -> Orders:
        orders = Orders()
        for change in news.arrived:
            self.neighbours.add(change)
        ready = list[Number]()
        for trial, green in news.finished:
            self.results[trial] = green
            self._learn(trial, green)
            ready.append(self.guesses[trial][0])
        while ready:
            ready += self._decide(ready.pop(), orders)
        self._choose_runs(orders)
        return orders

    def _learn(self, trial: Trial, green: bool) -> None:
        *beneath, number = trial.stack
        if green:
            self.good.update((member, max(SEEN_GREEN, self.good[member])) for member in trial.stack)
            return
        others_good = 1.0
        for member in beneath:
            others_good *= self.good[member] * self.compatible
        good, bad = self.good[number] * (1 - others_good * self.compatible), 1 - self.good[number]
        self.good[number] = good / (good + bad)

    def _decide(self, number: Number, orders: Orders) -> list[Number]:
        """Whoever may be decided now, because it waited for this one."""
        trial = self.trials.get((number, frozenset()))
        if number not in self.neighbours.undecided or self.neighbours.ahead[number] or trial not in self.results:
            return []
        merged = self.results[trial]
        (orders.merge if merged else orders.fail)(number, trial)
        behind = self.neighbours.remove(number)
        self._keep_right_guesses(number, merged, {number, *behind}, orders)
        return behind

    def _keep_right_guesses(self, decided: Number, merged: bool, concerned: set[Number], orders: Orders) -> None:
        before = {guess: trial for guess, trial in self.trials.items() if guess[0] in concerned}
        for guess in before:
            del self.trials[guess]
        for (number, lands), trial in before.items():
            if number != decided and (decided in lands) == merged:
                self.guesses[trial] = (number, lands - {decided})
                self.trials[number, lands - {decided}] = trial
            elif self.guesses.pop(trial) and self.results.pop(trial, None) is None:
                orders.stop.append(trial)

    def _choose_runs(self, orders: Orders) -> None:
        best = self._best_guesses()
        for guess, trial in tuple(self.trials.items()):
            if guess not in best and trial not in self.results:
                orders.stop.append(trial)
                del self.trials[guess], self.guesses[trial]
        for number, lands in best:
            if (number, lands) not in self.trials:
                trial = Trial(stack=(*sorted(lands), number))
                self.trials[number, lands], self.guesses[trial] = trial, (number, lands)
                orders.start.append(trial)

    def _best_guesses(self) -> dict[Guess, None]:
        """The most likely futures of all changes, without those that have been tested."""
        best = dict[Guess, None]()
        order = count()
        candidates = list[tuple[float, int, Futures, tuple[int, ...]]]()
        for number, ahead in self.neighbours.ahead.items():
            futures = Futures(number, [(other, self._merges(other)) for other in ahead])
            heappush(candidates, (-futures.best, next(order), futures, ()))
        while candidates and len(best) < self.workers:
            odds, _, futures, flipped = heappop(candidates)
            guess = futures.guess(flipped)
            if self.trials.get(guess) not in self.results:
                best[guess] = None
            for other, factor in futures.next_after(flipped):
                heappush(candidates, (odds * factor, next(order), futures, other))
        return best

    def _merges(self, number: Number) -> float:
        return self.good[number] * self.compatible ** len(self.neighbours.ahead[number])


class Futures:
    """What may become of those ahead of one change, from the likeliest future to the least likely."""

    def __init__(self, number: Number, ahead: list[tuple[Number, float]]) -> None:
        self.number = number
        doubtful_first = sorted(ahead, key=lambda other: abs(other[1] - 0.5))
        self.ahead = [other for other, _ in doubtful_first]
        self.expected = [odds >= 0.5 for _, odds in doubtful_first]
        self.ratios = [min(odds, 1 - odds) / max(odds, 1 - odds) for _, odds in doubtful_first]
        """How much less likely the future is in which this one comes out otherwise."""
        self.best = 1.0
        for _, odds in ahead:
            self.best *= max(odds, 1 - odds)

    def guess(self, flipped: tuple[int, ...]) -> Guess:
        lands = (other for place, other in enumerate(self.ahead) if self.expected[place] != (place in flipped))
        return self.number, frozenset(lands)

    def next_after(self, flipped: tuple[int, ...]) -> list[tuple[tuple[int, ...], float]]:
        """Each future is reached once, and none before a likelier one."""
        last = flipped[-1] if flipped else -1
        if last + 1 >= len(self.ahead):
            return []
        further = [((*flipped, last + 1), self.ratios[last + 1])]
        if flipped and self.ratios[last]:
            further.append(((*flipped[:-1], last + 1), self.ratios[last + 1] / self.ratios[last]))
        return further
