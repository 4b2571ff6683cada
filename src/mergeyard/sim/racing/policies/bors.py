"""Bors: all that wait are tested together, one batch at a time; a red batch is halved until the guilty are found."""

from collections import deque

from mergeyard.sim.racing.policy import News, Number, Orders, Trial


class Bors:
    def __init__(self) -> None:
        self.waiting: list[Number] = []
        self.halves = deque[tuple[Number, ...]]()
        self.idle = True

    def move(self, news: News, _: int) -> Orders:
        orders = Orders()
        self.waiting += [change.number for change in news.arrived]
        for trial, green in news.finished:
            self._conclude(trial, green, orders)
            self.idle = True
        batch = self._next_batch() if self.idle else ()
        if batch:
            orders.start.append(Trial(stack=batch, tests=len(batch)))
            self.idle = False
        return orders

    def _conclude(self, trial: Trial, green: bool, orders: Orders) -> None:
        batch = trial.stack
        if green:
            for number in batch:
                orders.merge(number, trial)
        elif len(batch) == 1:
            orders.fail(batch[0], trial)
        else:
            middle = len(batch) // 2
            self.halves.extendleft((batch[middle:], batch[:middle]))

    def _next_batch(self) -> tuple[Number, ...]:
        if self.halves:
            return self.halves.popleft()
        batch, self.waiting = tuple(self.waiting), []
        return batch
