"""A server that dies by its orders, again and again, and is started again each time with other ones."""

import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from random import Random
from threading import Timer

from tests.kills.boundaries import ANYWHERE, AT_THE_END
from tests.kills.orders import VARIABLE, GitFate, Orders
from tests.kills.toll import NOWHERE, Aim, Toll
from tests.support.patience import eventually
from tests.support.quick_server import QuickServer

DELAYS = (-4.0, -0.7)
"""Powers of ten, in seconds: a commit is over in milliseconds, a push in tenths of a second."""
LONGEST_LIFE = 10.0
"""Seconds from its start; whoever has come to no boundary by then is killed wherever it is."""
SECONDS_TO_DIE = 30.0
KILLED = -signal.SIGKILL

RIVAL = """\
#!/bin/sh
new=$(git --git-dir "$1" commit-tree -p "$3" -m "Quicker" "$3^{tree}")
git --git-dir "$1" update-ref "$2" "$new" "$3"
"""
ADA = {f"GIT_{who}_{what}": "ada@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
"""Who the rival is; the server's own git processes inherit nothing."""


class MortalServer(QuickServer):
    program = "tests.kills.server"

    def __init__(self, folder: Path, toll: Toll, random: Random, **settings: object) -> None:
        super().__init__(folder, "api", root="repos", **settings)
        self.deaths = 0
        self.when_dead: Callable[[], object] = lambda: None
        """Is done before the next one starts."""
        self._toll = toll
        self._random = random
        self._aim = NOWHERE
        self._buried = 0
        self._killer: Timer | None = None
        self._tomb = folder / "tomb"
        self._tomb.touch()
        self.surroundings.update(ADA, **{VARIABLE: str(folder / "orders")})
        (folder / "rival").write_text(RIVAL)
        (folder / "rival").chmod(0o755)

    def try_to_be_born(self, times: int) -> None:
        """Upon a database that is not there yet."""
        for _ in range(times):
            self._begin(self._toll.aim_at_birth(self._random))
            if self._comes_up():
                self.process.kill()
            self._bury()

    def live(self) -> None:
        """Without an end in sight."""
        if self._process is not None:
            self.process.kill()
            self._bury()
        self._begin(NOWHERE)
        self.come_up()

    def expose(self) -> None:
        """From now on it dies and rises."""
        self.process.kill()
        self.rise()

    def rise(self) -> None:
        """From a death that it was not spared; some die again before they are up."""
        self._bury()
        self._begin(self._toll.aim(self._random))
        while not self._comes_up():
            self._bury()
            self._begin(self._toll.aim(self._random))

    @property
    def effects_to_die_of(self) -> frozenset[str]:
        return self._aim.effects

    @property
    def wants_to_be_ended(self) -> bool:
        return self._aim.aims_at(*AT_THE_END)

    def end(self) -> None:
        """Politely, whatever comes of it."""
        self.process.send_signal(signal.SIGTERM)
        self.rise()

    def _begin(self, aim: Aim) -> None:
        self._aim = aim
        if aim.aims_at("git.mirror_made"):
            shutil.rmtree(self.folder / "data" / "mirrors", ignore_errors=True)
        Orders(
            tomb=str(self._tomb),
            boundaries=aim.boundaries,
            delay=10 ** self._random.uniform(*DELAYS),
            git_fate=self._random.choice(tuple(GitFate)),
            rival=str(self.folder / "rival") if aim.aims_at("git.push:branch_withdrawn") else None,
        ).save(self.folder / "orders")
        self.launch()
        if aim is not NOWHERE:
            self._killer = Timer(self._random.uniform(LONGEST_LIFE / 2, LONGEST_LIFE), self.process.kill)
            self._killer.start()

    def _comes_up(self) -> bool:
        try:
            self.come_up()
        except AssertionError:
            if self.alive:
                raise
            return False
        return True

    def _bury(self) -> None:
        """And notes of what it died. An end that nobody ordered is a bug, and so is a life without answers."""
        if self._killer is not None:
            self._killer.cancel()
        eventually(lambda: not self.alive, SECONDS_TO_DIE, but=lambda: "it lives, and gives no answer")
        names = self._tomb.read_text().splitlines()[self._buried :]
        code = self.process.returncode
        assert code == KILLED or (code == 0 and not names), self._log.read_text()[-5000:]
        if code == KILLED:
            self._buried += len(names)
            self._toll.kills[names[0] if names else ANYWHERE] += 1
            self.deaths += 1
        self._process = None
        self.when_dead()
