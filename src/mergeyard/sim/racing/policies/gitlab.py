"""GitLab's merge train: twenty cars under test at once, each upon all ahead.

A car whose pipeline is red is dropped at once, whoever ahead may be the cause, and those behind it start again.
"""

from mergeyard.sim.racing.policy import News, Orders
from mergeyard.sim.racing.train import Train

CARS = 20


class GitLab:
    def __init__(self, workers: int) -> None:
        self.train = Train(workers)

    def move(self, news: News, _: int) -> Orders:
        orders = Orders()
        for car in self.train.hear(news):
            if not car.green:
                self.train.drop(car, orders)
        self.train.test_the_first(CARS, orders)
        while self.train.cars and self.train.cars[0].green:
            self.train.merge_first(orders)
        self.train.test_the_first(CARS, orders)
        return orders
