"""The clock follows the one on the wall, but not its leaps."""

from mergeyard.adapters.clock import NANOSECONDS, CalmClock, WallClock

HOUR = 3_600_000


class Machine:
    def __init__(self) -> None:
        self.wall = 1_000_000
        self.counted = 5
        self.clock = CalmClock(lambda: self.wall * NANOSECONDS, lambda: self.counted * NANOSECONDS)

    def run_for(self, milliseconds: int) -> None:
        self.wall += milliseconds
        self.counted += milliseconds


def test_it_shows_what_the_wall_shows():
    machine = Machine()
    machine.run_for(HOUR)
    assert machine.clock.now() == machine.wall


def test_a_wall_clock_that_is_set_makes_no_time_pass():
    for leap in (HOUR, -HOUR):
        machine = Machine()
        machine.run_for(1000)
        shown = machine.clock.now()
        machine.wall += leap
        assert machine.clock.now() == shown


def test_the_wall_is_approached_by_a_small_part_of_what_passes():
    machine = Machine()
    before = machine.clock.now()
    machine.wall += HOUR
    machine.run_for(20_000)
    assert machine.clock.now() - before == 22_000


def test_in_time_it_shows_what_the_wall_shows_again():
    machine = Machine()
    machine.wall -= HOUR
    machine.run_for(11 * HOUR)
    assert machine.clock.now() == machine.wall


def test_the_wall_itself_shows_what_it_was_set_to():
    machine = Machine()
    wall = WallClock(lambda: machine.wall * NANOSECONDS)
    machine.wall -= HOUR
    assert wall.now() == machine.wall


def test_it_never_goes_back():
    machine = Machine()
    shown = [machine.clock.now()]
    for _ in range(100):
        machine.wall -= 5000
        machine.run_for(100)
        shown.append(machine.clock.now())
    assert shown == sorted(set(shown))
