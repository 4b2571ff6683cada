"""The clock follows the wall clock, but not its jumps."""

from mergeyard.adapters.clock import NS_PER_MS, SlewingClock, WallClock

HOUR = 3_600_000


class Machine:
    def __init__(self) -> None:
        self.wall = 1_000_000
        self.monotonic = 5
        self.clock = SlewingClock(lambda: self.wall * NS_PER_MS, lambda: self.monotonic * NS_PER_MS)

    def run_for(self, milliseconds: int) -> None:
        self.wall += milliseconds
        self.monotonic += milliseconds


def test_the_clock_shows_the_wall_clock_time():
    machine = Machine()
    machine.run_for(HOUR)
    assert machine.clock.now() == machine.wall


def test_setting_the_wall_clock_makes_no_time_pass():
    for jump in (HOUR, -HOUR):
        machine = Machine()
        machine.run_for(1000)
        shown = machine.clock.now()
        machine.wall += jump
        assert machine.clock.now() == shown


def test_the_clock_approaches_the_wall_clock_slowly():
    machine = Machine()
    before = machine.clock.now()
    machine.wall += HOUR
    machine.run_for(20_000)
    assert machine.clock.now() - before == 22_000


def test_the_clock_eventually_shows_the_wall_clock_time_again():
    machine = Machine()
    machine.wall -= HOUR
    machine.run_for(11 * HOUR)
    assert machine.clock.now() == machine.wall


def test_the_wall_clock_shows_what_it_was_set_to():
    machine = Machine()
    wall = WallClock(lambda: machine.wall * NS_PER_MS)
    machine.wall -= HOUR
    assert wall.now() == machine.wall


def test_the_clock_never_goes_back():
    machine = Machine()
    shown = [machine.clock.now()]
    for _ in range(100):
        machine.wall -= 5000
        machine.run_for(100)
        shown.append(machine.clock.now())
    assert shown == sorted(set(shown))
