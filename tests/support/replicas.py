"""Several replicas as real processes on one database and one folder of repositories, and a client that insists.

replicas = Replicas(tmp_path, database_url)
replicas.start()
replicas[0].freeze()
replicas[1].kill()
"""

import os
import re
import signal
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from time import monotonic
from typing import Any
from uuid import uuid4

import httpx

from tests.support.api import Api, Refused
from tests.support.host_log import HostLog
from tests.support.patience import eventually
from tests.support.quick_server import QuickServer

SECONDS_FOR_ONE_TO_ANSWER = 3.0
SECONDS_FOR_ANYBODY_TO_ANSWER = 90.0
SECONDS_TO_SHUN = 5.0
"""Whoever did not answer is asked again after that, or when nobody else is left."""


SPOKEN = ("event", "queue", "repo", "task", "work", "words", "exception")
"""What is shown of a log entry."""


class Replica(QuickServer):
    def __init__(self, folder: Path, root: Path, database_url: str, role: str) -> None:
        folder.mkdir()
        super().__init__(folder, root=str(root), database_url=database_url, role=role, open_metrics=True)
        self.role = role
        self.frozen = False

    def launch(self) -> None:
        self.frozen = False
        super().launch()

    def freeze(self) -> None:
        self.process.send_signal(signal.SIGSTOP)
        self.frozen = True

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)
        self.frozen = False

    def place_first_in_path(self, folder: Path) -> None:
        """From the next start on."""
        self.surroundings["PATH"] = f"{folder}{os.pathsep}{os.environ['PATH']}"

    def metric(self, name: str) -> float:
        """The sum over all labels."""
        text = httpx.get(f"{self.url}/metrics", timeout=SECONDS_FOR_ONE_TO_ANSWER, verify=False).text
        return sum(map(float, re.findall(rf"^{name}(?:{{.*}})? (\S+)$", text, re.MULTILINE)))

    @property
    def on_duty(self) -> bool:
        return self.alive and not self.frozen and self.metric("mergeyard_duties") > 0


class Replicas:
    def __init__(self, folder: Path, database_url: str, *roles: str) -> None:
        root = folder / "repos"
        root.mkdir()
        self._all = [
            Replica(folder / f"replica-{at}", root, database_url, role)
            for at, role in enumerate(roles or ("all", "all", "all"), start=1)
        ]

    def __iter__(self) -> Iterator[Replica]:
        return iter(self._all)

    def __getitem__(self, at: int) -> Replica:
        return self._all[at]

    def start(self) -> None:
        """Those that do not run, all at once."""
        down = [replica for replica in self if not replica.alive]
        for replica in down:
            replica.launch()
        for replica in down:
            replica.come_up()

    def stop(self) -> None:
        for replica in self:
            if replica.frozen:
                replica.thaw()
            if replica.alive:
                replica.stop()

    def close(self) -> None:
        for replica in self:
            if replica.alive:
                replica.kill()

    def on_duty(self) -> Replica:
        """Of those that are awake; where there is one repository, there is one replica on duty."""
        return eventually(lambda: next((replica for replica in self if replica.on_duty), None), but=self.warnings)

    def warnings(self) -> Counter[str]:
        """What was worth more than a note, and how often it was said."""
        entries = (entry for replica in self for entry in replica.told() if entry["level"] != "info")
        return Counter(" ".join(str(entry[name]) for name in SPOKEN if name in entry) for entry in entries)


class Rota:
    """Whom a client asks next: one after the other, without those that have just disappointed it."""

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas
        self._turns = count()
        self._asked = ""
        self._shunned = dict[str, float]()

    @property
    def url(self) -> str:
        up = [replica.url for replica in self._replicas if replica.alive and replica.url and replica.role != "worker"]
        trusted = [url for url in up if self._shunned.get(url, 0) < monotonic()] or up
        if not trusted:
            raise httpx.ConnectError("no replica is up")
        self._asked = trusted[next(self._turns) % len(trusted)]
        return self._asked

    def shun(self) -> None:
        """The one that was asked last."""
        self._shunned[self._asked] = monotonic() + SECONDS_TO_SHUN


class PatientApi(Api):
    """Asks any replica, and asks again with the same key until one has answered."""

    def __init__(self, replicas: Replicas, token: str, host_log: HostLog, queue: dict[str, Any]) -> None:
        self._rota = Rota(replicas)
        super().__init__(self._rota, token, host_log, queue, SECONDS_FOR_ONE_TO_ANSWER)

    def post(self, path: str, *, key: str | None = None, **members: Any) -> dict[str, Any]:
        key = key or uuid4().hex
        answered = eventually(
            lambda: self._attempt(path, key, members),
            SECONDS_FOR_ANYBODY_TO_ANSWER,
            but=lambda: f"no replica answers {path} {members}",
        )
        return answered[0]

    def _attempt(self, path: str, key: str, members: dict[str, Any]) -> tuple[dict[str, Any]] | None:
        try:
            return (super().post(path, key=key, **members),)
        except httpx.TransportError:
            self._rota.shun()
        except Refused as refused:
            if refused.status != 503:
                raise
        return None
