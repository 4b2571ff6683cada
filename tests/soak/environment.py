"""The environment of a soak: the real server, its repositories and queues, and a receiver of webhooks."""

import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.soak.evidence import IncrementalHostLog
from tests.soak.traffic import MeasuredApi, QueueTraffic
from tests.support.api_client import QUEUE
from tests.support.environment import new_token
from tests.support.repositories import Origin
from tests.support.server import Server
from tests.support.webhooks import WebhookReceiver

BATCHED: dict[str, Any] = {"batch": True, "batchingMinSize": 8, "batchingMaxWaitTimeMinutes": 0, "concurrency": 3}
QUEUES: dict[str, dict[str, Any]] = {
    "app": {"mergeMethod": "squash"},
    "library": {"mergeMethod": "merge_commit"},
}
MAINTENANCE_TASKS = ("pack-refs", "loose-objects", "incremental-repack", "commit-graph")
WITHOUT_HOOKS = ("-c", "core.hooksPath=/dev/null")
"""Without hooks: git calls the hook for a ref that it packs as if the ref were deleted."""
MAINTENANCE = (*WITHOUT_HOOKS, "maintenance", "run", "--quiet", *(f"--task={task}" for task in MAINTENANCE_TASKS))
END_EVENTS = frozenset(f"pull_request.{state}" for state in ("merged", "failed", "cancelled"))


class SoakEnvironment:
    def __init__(self, folder: Path, seed: int, receiver: WebhookReceiver) -> None:
        self.temporary = folder / "temporary"
        self.temporary.mkdir()
        self.server = Server(folder, allow_private_webhooks=True)
        self.server.environment["TMPDIR"] = str(self.temporary)
        self.delivered_conclusions = set[tuple[str, int]]()
        self._receiver = receiver
        token = new_token(self.server.config)
        self.queues = [self._track(name, token, seed) for name in QUEUES]

    def _track(self, name: str, token: str, seed: int) -> QueueTraffic:
        origin = Origin.create(self.server.folder / "repos" / "acme" / f"{name}.git")
        host_log = IncrementalHostLog(origin, self.server.folder / f"host-{name}")
        queue = QUEUE | {"repo": QUEUE["repo"] | {"name": name}}
        return QueueTraffic(origin, host_log, MeasuredApi(self.server, token, host_log, queue), f"{seed} {name}")

    def open(self) -> None:
        self.server.start()
        for track, settings in zip(self.queues, QUEUES.values(), strict=True):
            track.create_queue(**BATCHED, **settings)
        self.queues[0].api.post("createWebhook", url=self._receiver.url)

    @property
    def ended(self) -> int:
        return sum(track.concluded for track in self.queues)

    def read_events(self) -> None:
        """Takes the received events, and remembers only which pull requests concluded."""
        count = len(self._receiver.received)
        events = [receipt.payload for receipt in self._receiver.received[:count]]
        del self._receiver.received[:count]
        ends = (event["data"] for event in events if event["type"] in END_EVENTS)
        self.delivered_conclusions |= {(data["repository"], data["pr_number"]) for data in ends}

    def all_conclusions_delivered(self) -> bool:
        self.read_events()
        return len(self.delivered_conclusions) == self.ended

    def maintain_repositories(self) -> None:
        """Runs git maintenance in the repositories, as a Git host does. It can fail during a push."""
        for track in self.queues:
            subprocess.run(["git", "--git-dir", track.origin.url, *MAINTENANCE], check=False, capture_output=True)

    def close(self) -> None:
        for track in self.queues:
            track.api.close()
        if self.server.alive:
            self.server.stop()


@contextmanager
def a_soak_environment(folder: Path, seed: int) -> Generator[SoakEnvironment]:
    """The folder is kept only when a check fails."""
    with WebhookReceiver().serve() as receiver:
        environment = SoakEnvironment(folder, seed, receiver)
        try:
            environment.open()
            yield environment
        finally:
            environment.close()
    shutil.rmtree(folder)
