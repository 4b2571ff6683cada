"""GitHub's merge queue: every pull request is built upon all ahead, and the first few merge together as a group.

A group merges when each of it is green: five at once, or fewer when the first has waited five minutes for others. A
pull request that is red while all beneath it are green is removed, and those behind it are built again. Up to a hundred
are built at once, the most that can be set.
"""

from mergeyard.domain.instants import MINUTE
from mergeyard.sim.racing.policy import News, Number, Orders
from mergeyard.sim.racing.train import Car, Train

GROUP = 5
LONGEST_WAIT = 5 * MINUTE
BUILDS = 100


class GitHub:
    def __init__(self, workers: int) -> None:
        self.train = Train(workers)

    def move(self, news: News, now: int) -> Orders:
        orders = Orders()
        self.train.hear(news)
        self._remove_the_guilty(orders)
        self.train.test_the_first(BUILDS, orders)
        while group := self._group_that_may_merge(now):
            for _ in group:
                self.train.merge_first(orders)
        self.train.test_the_first(BUILDS, orders)
        orders.wake_at = self._end_of_wait(now)
        return orders

    def _remove_the_guilty(self, orders: Orders) -> None:
        beneath = list[Number]()
        for car in tuple(self.train.cars):
            if car.green is None or car.upon != tuple(beneath):
                return
            if car.green:
                beneath.append(car.number)
            else:
                self.train.drop(car, orders)

    def _group_that_may_merge(self, now: int) -> list[Car]:
        group = self.train.cars[:GROUP]
        if not all(car.green for car in group) or not group:
            return []
        return group if len(group) == GROUP or now >= group[0].at + LONGEST_WAIT else []

    def _end_of_wait(self, now: int) -> int | None:
        ends = self.train.cars[0].at + LONGEST_WAIT if self.train.cars else now
        return ends if ends > now else None
