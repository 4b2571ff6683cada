"""Counts how often servers were killed at each boundary, and chooses the next boundaries."""

import shutil
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from threading import Timer

from msgspec import Struct

from tests.kills.effects import (
    ANYWHERE,
    AT_FIRST_START,
    AT_SHUTDOWN,
    StoreKind,
    boundary_weight,
    effect_of,
    list_boundaries,
)
from tests.kills.killer import PLAN_VARIABLE, KillPlan, LeftoverGit
from tests.support.forked_server import ForkedServer
from tests.support.polling import eventually

CHOSEN_AT_ONCE = 4
"""A server is killed at the first of this many boundaries that it reaches."""


class ChosenBoundaries(Struct, frozen=True):
    boundaries: dict[str, int]

    @property
    def effects(self) -> frozenset[str]:
        return frozenset(map(effect_of, self.boundaries))

    def includes(self, *effects: str) -> bool:
        return not self.effects.isdisjoint(effects)


NO_KILL = ChosenBoundaries({})


class KillSchedule:
    def __init__(self, store: StoreKind, only: Sequence[str] = ()) -> None:
        self.store = store
        self.kills = Counter[str]()
        self.boundaries = [name for name in list_boundaries(store) if not only or name in (*only, ANYWHERE)]

    @property
    def unreached(self) -> list[str]:
        """Boundaries without a kill."""
        return [name for name in self.boundaries if not self.kills[name]]

    def choose(self, random: Random) -> ChosenBoundaries:
        """Prefers boundaries with few kills. The first kill at a boundary happens the first time that it is reached."""
        names = [name for name in self.boundaries if name != ANYWHERE and effect_of(name) not in AT_FIRST_START]
        return self._choose(random, names)

    def choose_for_first_start(self, random: Random) -> ChosenBoundaries:
        return self._choose(random, [name for name in self.boundaries if effect_of(name) in AT_FIRST_START])

    def _choose(self, random: Random, names: list[str]) -> ChosenBoundaries:
        chosen = dict[str, int]()
        while names and len(chosen) < CHOSEN_AT_ONCE:
            weights = [boundary_weight(name) / (1 + self.kills[name]) ** 2 for name in names]
            name = random.choices(names, weights)[0]
            names.remove(name)
            chosen[name] = random.randint(1, 1 + self.kills[name])
        return ChosenBoundaries(chosen)


DELAYS = (-4.0, -0.7)
"""Range of the exponent, in seconds: a commit takes milliseconds, a push tenths of a second."""
MAX_LIFETIME_S = 10.0
"""A server that has reached no boundary by then is killed wherever it is."""
EXIT_TIMEOUT_S = 30.0
KILLED = -signal.SIGKILL

RIVAL = """\
#!/bin/sh
new=$(git --git-dir "$1" commit-tree -p "$3" -m "Concurrent push" "$3^{tree}")
git --git-dir "$1" update-ref "$2" "$new" "$3"
"""
ADA = {f"GIT_{who}_{what}": "ada@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
"""The identity of the concurrent push; the server's own git processes inherit no variables."""


class KillableServer(ForkedServer):
    program = "tests.kills.server"

    def __init__(self, folder: Path, schedule: KillSchedule, random: Random, **settings: object) -> None:
        super().__init__(folder, "api", root="repos", **settings)
        self.kills = 0
        self.on_killed: Callable[[], object] = lambda: None
        """Called before the next server starts."""
        self._schedule = schedule
        self._random = random
        self._chosen = NO_KILL
        self._kills_read = 0
        self._timer: Timer | None = None
        self._kill_log = folder / "kill-log"
        self._kill_log.touch()
        self.environment.update(ADA, **{PLAN_VARIABLE: str(folder / "plan")})
        (folder / "rival").write_text(RIVAL)
        (folder / "rival").chmod(0o755)

    def kill_during_first_start(self, times: int) -> None:
        """Kills servers while they create the database."""
        for _ in range(times):
            self._start(self._schedule.choose_for_first_start(self._random))
            if self._becomes_ready():
                self.process.kill()
            self._record_kill()

    def start_without_kills(self) -> None:
        """Starts a server that is not killed."""
        if self._process is not None:
            self.process.kill()
            self._record_kill()
        self._start(NO_KILL)
        self.wait_until_listening()

    def start_killing(self) -> None:
        """From now on the server is killed and restarted."""
        self.process.kill()
        self.restart_after_kill()

    def restart_after_kill(self) -> None:
        """Starts the next server; some are killed again before they are ready."""
        self._record_kill()
        self._start(self._schedule.choose(self._random))
        while not self._becomes_ready():
            self._record_kill()
            self._start(self._schedule.choose(self._random))

    @property
    def chosen_effects(self) -> frozenset[str]:
        return self._chosen.effects

    @property
    def needs_shutdown(self) -> bool:
        return self._chosen.includes(*AT_SHUTDOWN)

    def shut_down(self) -> None:
        """Ends it with SIGTERM; it can be killed during the shutdown."""
        self.process.send_signal(signal.SIGTERM)
        self.restart_after_kill()

    def _start(self, chosen: ChosenBoundaries) -> None:
        self._chosen = chosen
        if chosen.includes("git.mirror_created"):
            shutil.rmtree(self.folder / "data" / "mirrors", ignore_errors=True)
        KillPlan(
            kill_log=str(self._kill_log),
            boundaries=chosen.boundaries,
            delay=10 ** self._random.uniform(*DELAYS),
            leftover_git=self._random.choice(tuple(LeftoverGit)),
            rival_command=str(self.folder / "rival") if chosen.includes("git.push:branch_withdrawn") else None,
        ).save(self.folder / "plan")
        self.launch()
        if chosen is not NO_KILL:
            self._timer = Timer(self._random.uniform(MAX_LIFETIME_S / 2, MAX_LIFETIME_S), self.process.kill)
            self._timer.start()

    def _becomes_ready(self) -> bool:
        try:
            self.wait_until_listening()
        except AssertionError:
            if self.alive:
                raise
            return False
        return True

    def _record_kill(self) -> None:
        """Counts the boundary of the kill. Any other exit is a bug, and so is a process that does not respond."""
        if self._timer is not None:
            self._timer.cancel()
        eventually(
            lambda: not self.alive, EXIT_TIMEOUT_S, describe=lambda: "the process is alive, but does not respond"
        )
        names = self._kill_log.read_text().splitlines()[self._kills_read :]
        code = self.process.returncode
        assert code == KILLED or (code == 0 and not names), self._log.read_text()[-5000:]
        if code == KILLED:
            self._kills_read += len(names)
            self._schedule.kills[names[0] if names else ANYWHERE] += 1
            self.kills += 1
        self._process = None
        self.on_killed()
