"""Faults that befall replicas: killed, stopped for a while or for longer than their lease, ended politely.

They come at random moments, or out of an ambush: just when a push of somebody's arrives, or has moved its refs.
"""

from collections.abc import Callable
from contextlib import suppress
from random import Random
from threading import Event, Thread

from msgspec import Struct

from tests.replicas.installation import Installation
from tests.support.host_log import TEST_BRANCHES, Fate, Moment
from tests.support.replicas import Replica

LONGEST_PEACE = 3.0
"""Seconds between two faults, and in an ambush."""
SHORT_STOP, LONG_STOP = (0.05, 2.0), (11.0, 14.0)
"""Seconds; a lease lasts ten."""
AMBUSHES = (
    *(("KILL", moment, Fate.GOES_ON) for moment in Moment),
    *(("KILL", moment, Fate.DIES) for moment in (Moment.RECEIVED, Moment.PREPARED)),
    *(("STOP", moment, Fate.GOES_ON) for moment in Moment),
)
"""Only the dead cannot hear that their push was refused, and what has moved its refs was not."""


class Toll(Struct):
    kills: int = 0
    short_stops: int = 0
    long_stops: int = 0
    clean_ends: int = 0

    def __str__(self) -> str:
        stops = f"{self.short_stops} short and {self.long_stops} long stops"
        return f"{self.kills} kills, {stops}, {self.clean_ends} clean ends"


class Faults:
    def __init__(self, installation: Installation, seed: int) -> None:
        self.toll = Toll()
        self._installation = installation
        self._replicas = installation.replicas
        self._random = Random(f"{seed} faults")
        self._over = Event()
        self._out = dict[Replica, Thread]()

    def rage(self, kills: int, progress: Callable[[Toll], object] = lambda _: None) -> None:
        """In the end everybody is up and awake."""
        try:
            while self.toll.kills < kills:
                self._strike()
                self._raise_the_dead()
                progress(self.toll)
        finally:
            self._over.set()
            for recovery in self._out.values():
                recovery.join()
            self._replicas.start()

    def _strike(self) -> None:
        faults = {self._kill: 8, self._ambush: 6, self._stop: 3, self._end: 1}
        fault = self._random.choices(list(faults), list(faults.values()))[0]
        if fault != self._ambush:
            self._wait()
        awake = [replica for replica in self._replicas if not self._is_out(replica)]
        if awake:
            fault(self._random.choice(awake))

    def _wait(self) -> None:
        self._over.wait(self._random.uniform(0, LONGEST_PEACE))

    def _kill(self, replica: Replica) -> None:
        replica.kill()

    def _end(self, replica: Replica) -> None:
        replica.stop()
        self.toll.clean_ends += 1
        self._recover(replica, replica.start)

    def _stop(self, replica: Replica) -> None:
        replica.freeze()
        self._sleep_for_a_while(replica)

    def _ambush(self, _: Replica) -> None:
        """On whoever pushes next to one of the queues."""
        queue = self._random.choice(self._installation.queues)
        ref = self._random.choice((queue.evidence.target, TEST_BRANCHES))
        signal, moment, fate = self._random.choice(AMBUSHES)
        queue.host_log.ambush(signal, moment, fate, ref=ref)
        self._wait()
        struck = queue.host_log.lift_ambush()
        for replica in self._replicas:
            if signal == "STOP" and replica.process.pid == struck and not self._is_out(replica):
                replica.freeze()
                self._sleep_for_a_while(replica)

    def _sleep_for_a_while(self, replica: Replica) -> None:
        long = self._random.random() < 0.3
        seconds = self._random.uniform(*(LONG_STOP if long else SHORT_STOP))
        self.toll.long_stops += long
        self.toll.short_stops += not long

        def sleep_and_wake() -> None:
            self._over.wait(seconds)
            replica.thaw()

        self._recover(replica, sleep_and_wake)

    def _raise_the_dead(self) -> None:
        for replica in self._replicas:
            if not replica.alive and not self._is_out(replica):
                replica.process.wait()
                self.toll.kills += 1
                self._recover(replica, replica.start)

    def _recover(self, replica: Replica, recover: Callable[[], None]) -> None:
        """Others are struck meanwhile; and who is struck again meanwhile is raised again."""

        def try_to_recover() -> None:
            with suppress(AssertionError):
                recover()

        self._out[replica] = Thread(target=try_to_recover)
        self._out[replica].start()

    def _is_out(self, replica: Replica) -> bool:
        return replica in self._out and self._out[replica].is_alive()
