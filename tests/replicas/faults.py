"""Faults of replicas: killed, suspended for a while or for longer than their lease, shut down cleanly.

They happen at random moments, or exactly when a push arrives at the host or has moved its refs.
"""

from collections.abc import Callable
from contextlib import suppress
from random import Random
from threading import Event, Thread

from msgspec import Struct

from tests.replicas.installation import Installation
from tests.support.host_log import TEST_BRANCH_PREFIX, PushOutcome, PushStage
from tests.support.replicas import Replica

MAX_PAUSE_S = 3.0
"""The most seconds between two faults, and to wait for a push."""
SHORT_STOP_S, LONG_STOP_S = (0.05, 2.0), (11.0, 14.0)
"""Seconds; a lease lasts ten."""
PUSH_FAULTS = (
    *(("KILL", moment, PushOutcome.CONTINUES) for moment in PushStage),
    *(("KILL", moment, PushOutcome.FAILS) for moment in (PushStage.RECEIVED, PushStage.PREPARED)),
    *(("STOP", moment, PushOutcome.CONTINUES) for moment in PushStage),
)
"""Only a killed replica does not learn that its push was refused, and a push that moved its refs was not refused."""


class FaultCounts(Struct):
    kills: int = 0
    short_stops: int = 0
    long_stops: int = 0
    clean_shutdowns: int = 0

    def __str__(self) -> str:
        stops = f"{self.short_stops} short and {self.long_stops} long stops"
        return f"{self.kills} kills, {stops}, {self.clean_shutdowns} clean shutdowns"


class Faults:
    def __init__(self, installation: Installation, seed: int) -> None:
        self.counts = FaultCounts()
        self._installation = installation
        self._replicas = installation.replicas
        self._random = Random(f"{seed} faults")
        self._over = Event()
        self._recovering = dict[Replica, Thread]()

    def inject(self, kills: int, progress: Callable[[FaultCounts], object] = lambda _: None) -> None:
        """At the end all replicas are running."""
        try:
            while self.counts.kills < kills:
                self._inject_one()
                self._restart_killed()
                progress(self.counts)
        finally:
            self._over.set()
            for thread in self._recovering.values():
                thread.join()
            self._replicas.start()

    def _inject_one(self) -> None:
        faults = {self._kill: 8, self._signal_on_push: 6, self._stop: 3, self._shut_down: 1}
        fault = self._random.choices(list(faults), list(faults.values()))[0]
        if fault != self._signal_on_push:
            self._wait()
        running = [replica for replica in self._replicas if not self._is_recovering(replica)]
        if running:
            fault(self._random.choice(running))

    def _wait(self) -> None:
        self._over.wait(self._random.uniform(0, MAX_PAUSE_S))

    def _kill(self, replica: Replica) -> None:
        replica.kill()

    def _shut_down(self, replica: Replica) -> None:
        replica.stop()
        self.counts.clean_shutdowns += 1
        self._recover(replica, replica.start)

    def _stop(self, replica: Replica) -> None:
        replica.freeze()
        self._suspend(replica)

    def _signal_on_push(self, _: Replica) -> None:
        """Hits the replica that pushes next for one of the queues."""
        queue = self._random.choice(self._installation.queues)
        ref = self._random.choice((queue.evidence.target_ref, TEST_BRANCH_PREFIX))
        signal, moment, fate = self._random.choice(PUSH_FAULTS)
        queue.host_log.signal_on_push(signal, moment, fate, ref=ref)
        self._wait()
        hit_process = queue.host_log.cancel_signal()
        for replica in self._replicas:
            if signal == "STOP" and replica.process.pid == hit_process and not self._is_recovering(replica):
                replica.freeze()
                self._suspend(replica)

    def _suspend(self, replica: Replica) -> None:
        long = self._random.random() < 0.3
        seconds = self._random.uniform(*(LONG_STOP_S if long else SHORT_STOP_S))
        self.counts.long_stops += long
        self.counts.short_stops += not long

        def wait_and_thaw() -> None:
            self._over.wait(seconds)
            replica.thaw()

        self._recover(replica, wait_and_thaw)

    def _restart_killed(self) -> None:
        for replica in self._replicas:
            if not replica.alive and not self._is_recovering(replica):
                replica.process.wait()
                self.counts.kills += 1
                self._recover(replica, replica.start)

    def _recover(self, replica: Replica, recover: Callable[[], None]) -> None:
        """In the background: other replicas are hit meanwhile, and a replica that is hit again is started again."""

        def try_to_recover() -> None:
            with suppress(AssertionError):
                recover()

        self._recovering[replica] = Thread(target=try_to_recover)
        self._recovering[replica].start()

    def _is_recovering(self, replica: Replica) -> bool:
        return replica in self._recovering and self._recovering[replica].is_alive()
