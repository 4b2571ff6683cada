"""One change after the other, each tested upon what has merged: the simplest queue that keeps the branch green."""

from collections import deque

from mergeyard.sim.racing.policy import News, Number, Orders, Trial


class Serial:
    def __init__(self) -> None:
        self.waiting = deque[Number]()
        self.idle = True

    def move(self, news: News, _: int) -> Orders:
        orders = Orders()
        self.waiting.extend(change.number for change in news.arrived)
        for trial, green in news.finished:
            (orders.merge if green else orders.fail)(trial.stack[-1], trial)
            self.idle = True
        if self.idle and self.waiting:
            orders.start.append(Trial(stack=(self.waiting.popleft(),)))
            self.idle = False
        return orders
