"""Several replicas as real processes on one database and one folder of repositories, and a client that retries.

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

import httpx2

from tests.support.api_client import ApiClient, ApiRefused
from tests.support.forked_server import ForkedServer
from tests.support.host_log import HostLog
from tests.support.polling import eventually

REQUEST_TIMEOUT_S = 5.0
RETRY_TIMEOUT_S = 240.0
AVOID_S = 5.0
"""A replica that did not respond is avoided for this time, unless no other is left."""


SHOWN_LOG_FIELDS = ("event", "queue", "repo", "task", "work", "detail", "error", "exception")
"""Fields of a log entry that are shown."""


class Replica(ForkedServer):
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

    def prepend_to_path(self, folder: Path) -> None:
        """Takes effect at the next start."""
        self.environment["PATH"] = f"{folder}{os.pathsep}{os.environ['PATH']}"

    def metric(self, name: str) -> float:
        """The sum over all labels."""
        text = httpx2.get(f"{self.url}/metrics", timeout=REQUEST_TIMEOUT_S, verify=False).text
        return sum(map(float, re.findall(rf"^{name}(?:{{.*}})? (\S+)$", text, re.MULTILINE)))

    @property
    def holds_lease(self) -> bool:
        return self.alive and not self.frozen and self.metric("mergeyard_leases") > 0


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
        """Starts all stopped replicas at the same time."""
        down = [replica for replica in self if not replica.alive]
        for replica in down:
            replica.launch()
        for replica in down:
            replica.wait_until_listening()

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

    def lease_holder(self) -> Replica:
        """The running replica that holds the lease; one repository has one holder."""
        return eventually(
            lambda: next((replica for replica in self if replica.holds_lease), None), describe=self.warnings
        )

    def warnings(self) -> Counter[str]:
        """Log entries above level info, counted."""
        entries = (entry for replica in self for entry in replica.log_entries() if entry["level"] != "info")
        return Counter(" ".join(str(entry[name]) for name in SHOWN_LOG_FIELDS if name in entry) for entry in entries)


class ReplicaRotation:
    """Chooses the next replica for a client, round-robin, without those that just failed to respond."""

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas
        self._counter = count()
        self._last_url = ""
        self._avoided_until = dict[str, float]()

    @property
    def url(self) -> str:
        up = [replica.url for replica in self._replicas if replica.alive and replica.url and replica.role != "worker"]
        preferred = [url for url in up if self._avoided_until.get(url, 0) < monotonic()] or up
        if not preferred:
            raise httpx2.ConnectError("no replica is up")
        self._last_url = preferred[next(self._counter) % len(preferred)]
        return self._last_url

    def avoid_last(self) -> None:
        """Avoids the replica that was used last."""
        self._avoided_until[self._last_url] = monotonic() + AVOID_S


class RetryingApiClient(ApiClient):
    """Repeats a request with the same idempotency key on any replica until one responds."""

    def __init__(self, replicas: Replicas, token: str, host_log: HostLog, queue: dict[str, Any]) -> None:
        self._rotation = ReplicaRotation(replicas)
        super().__init__(self._rotation, token, host_log, queue, REQUEST_TIMEOUT_S)

    def post(self, path: str, *, key: str | None = None, **members: Any) -> dict[str, Any]:
        key = key or uuid4().hex
        result = eventually(
            lambda: self._attempt(path, key, members),
            RETRY_TIMEOUT_S,
            describe=lambda: f"no replica responds to {path} {members}",
        )
        return result[0]

    def _attempt(self, path: str, key: str, members: dict[str, Any]) -> tuple[dict[str, Any]] | None:
        try:
            return (super().post(path, key=key, **members),)
        except httpx2.TransportError:
            self._rotation.avoid_last()
        except ApiRefused as error:
            if error.status != 503:
                raise
        return None
