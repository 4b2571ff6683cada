"""Zuul's dependent pipeline: one line, tested optimistically, with a window that opens slowly and closes fast.

A change that fails stands aside at once, and those behind it are tested without it; it is ejected when all ahead of it
are decided, and tested again if one of those was to blame. The window is 20 to begin with, grows by one with every
merge, and is halved by every ejection, down to three.
"""

from mergeyard.sim.racing.policy import News, Orders
from mergeyard.sim.racing.train import Train

WINDOW, NARROWEST = 20, 3


class Zuul:
    def __init__(self, workers: int) -> None:
        self.train = Train(workers)
        self.window = WINDOW

    def move(self, news: News, _: int) -> Orders:
        orders = Orders()
        self.train.hear(news)
        while self.train.cars and self.train.cars[0].green is not None:
            first = self.train.cars[0]
            if first.upon:
                break
            if first.green:
                self.train.merge_first(orders)
                self.window += 1
            else:
                self.train.drop(first, orders)
                self.window = max(NARROWEST, self.window // 2)
        self.train.test_the_first(self.window, orders)
        return orders
