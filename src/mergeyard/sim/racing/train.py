"""A line in which everybody is tested upon all ahead at once, as if they will all merge."""

from mergeyard.sim.racing.policy import News, Number, Orders, Trial


class Car:
    """One change in the line, and the run that speaks for it."""

    def __init__(self, number: Number, at: int) -> None:
        self.number = number
        self.at = at
        self.trial: Trial | None = None
        self.upon: tuple[Number, ...] = ()
        """Whom its run holds beside it and what has merged."""
        self.green: bool | None = None

    @property
    def running(self) -> bool:
        return self.trial is not None and self.green is None


class Train:
    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.cars: list[Car] = []
        self.reach = 0
        """Nobody behind so many has a run."""

    def hear(self, news: News) -> list[Car]:
        """Newcomers go to the end. Whose run ended, in the order of the line?"""
        results = dict(news.finished)
        heard = [car for car in self.cars[: self.reach] if car.trial is not None and car.trial in results]
        for car in heard:
            car.green = car.trial is not None and results[car.trial]
        self.cars += [Car(change.number, change.at) for change in news.arrived]
        return heard

    def merge_first(self, orders: Orders) -> None:
        car = self.cars.pop(0)
        orders.merge(car.number, *_evidence(car))
        for other in self.cars[: self.reach]:
            if other.upon[:1] == (car.number,):
                other.upon = other.upon[1:]

    def drop(self, car: Car, orders: Orders) -> None:
        self.cars.remove(car)
        orders.fail(car.number, *_evidence(car))

    def test_the_first(self, window: int, orders: Orders) -> None:
        """Each upon those ahead that are not red. Whoever was tested upon others is tested again, within the window;
        a run that was begun before the window closed goes on."""
        ahead = list[Number]()
        free = self.workers
        for place, car in enumerate(self.cars[: max(window, self.reach)]):
            if car.trial is not None and car.upon != tuple(ahead):
                _forget_the_run(car, orders)
            if car.trial is None and free > 0 and place < window:
                car.upon = tuple(ahead)
                car.trial = Trial(stack=(*ahead, car.number))
                orders.start.append(car.trial)
            self.reach = place + 1 if car.trial is not None else self.reach
            free -= car.running
            if car.green is not False:
                ahead.append(car.number)


def _evidence(car: Car) -> tuple[Trial, ...]:
    return () if car.trial is None else (car.trial,)


def _forget_the_run(car: Car, orders: Orders) -> None:
    if car.trial is not None and car.green is None:
        orders.stop.append(car.trial)
    car.trial, car.green = None, None
