"""Tide: at any time one batch and, beside it, the first change alone, both upon what has merged.

A green batch merges whole; a green change alone merges only when no batch is under test, because it would outdate it.
A change that is red alone leaves, and ends a batch that holds it; a red batch is only tried again. Batches
hold up to ten here.
"""

from mergeyard.sim.racing.policy import News, Number, Orders, Trial

BATCH = 10


class Tide:
    def __init__(self, workers: int) -> None:
        self.room_for_batches = workers > 1
        self.pool: list[Number] = []
        self.batch: Trial | None = None
        self.alone: Trial | None = None
        self.green: Trial | None = None
        """One that passed alone, and waits until no batch is under test."""

    def move(self, news: News, _: int) -> Orders:
        orders = Orders()
        self.pool += [change.number for change in news.arrived]
        for trial, green in news.finished:
            if trial is self.batch:
                self._end_batch(trial, green, orders)
            else:
                self._end_alone(trial, green, orders)
        if self.green is not None and self.batch is None:
            self._merge(self.green, orders)
        self._start(orders)
        return orders

    def _end_batch(self, trial: Trial, green: bool, orders: Orders) -> None:
        self.batch = None
        if green:
            self._merge(trial, orders)

    def _end_alone(self, trial: Trial, green: bool, orders: Orders) -> None:
        self.alone = None
        if green:
            self.green = trial
        elif trial.stack[0] in self.pool:
            self.pool.remove(trial.stack[0])
            orders.fail(trial.stack[0], trial)
            if self.batch is not None and trial.stack[0] in self.batch.stack:
                orders.stop.append(self.batch)
                self.batch = None

    def _merge(self, trial: Trial, orders: Orders) -> None:
        """The branch moves, so whatever was tested upon it before is outdated."""
        for number in trial.stack:
            if number in self.pool:
                self.pool.remove(number)
                orders.merge(number, trial)
        orders.stop += [other for other in (self.alone, self.batch) if other is not None]
        self.alone = self.batch = self.green = None

    def _start(self, orders: Orders) -> None:
        if self.pool and self.alone is None and self.green is None:
            self.alone = Trial(stack=(self.pool[0],))
            orders.start.append(self.alone)
        if len(self.pool) > 1 and self.batch is None and self.room_for_batches:
            batch = tuple(self.pool[:BATCH])
            self.batch = Trial(stack=batch, tests=len(batch))
            orders.start.append(self.batch)
