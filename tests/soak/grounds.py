"""The real server with the repositories, queues and the receiver of a soak around it."""

import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.soak.tailing import TailedLog
from tests.soak.track import MeasuredApi, Track
from tests.support.api import QUEUE
from tests.support.premises import new_token
from tests.support.receiver import Receiver
from tests.support.repositories import Origin
from tests.support.server import Server

BATCHED: dict[str, Any] = {"batch": True, "batchingMinSize": 8, "batchingMaxWaitTimeMinutes": 0, "concurrency": 3}
QUEUES: dict[str, dict[str, Any]] = {
    "app": {"mergeMethod": "squash"},
    "library": {"mergeMethod": "merge_commit"},
}
TASKS = ("pack-refs", "loose-objects", "incremental-repack", "commit-graph")
WITHOUT_HOOKS = ("-c", "core.hooksPath=/dev/null")
"""Git tells the hook of a ref that it packs that the ref is gone, and nothing moved."""
UPKEEP = (*WITHOUT_HOOKS, "maintenance", "run", "--quiet", *(f"--task={task}" for task in TASKS))
ENDS = frozenset(f"pull_request.{state}" for state in ("merged", "failed", "cancelled"))


class Grounds:
    def __init__(self, folder: Path, seed: int, receiver: Receiver) -> None:
        self.temporary = folder / "temporary"
        self.temporary.mkdir()
        self.server = Server(folder, allow_private_webhooks=True)
        self.server.surroundings["TMPDIR"] = str(self.temporary)
        self.ends_told = set[tuple[str, int]]()
        self._receiver = receiver
        token = new_token(self.server.config)
        self.tracks = [self._track(name, token, seed) for name in QUEUES]

    def _track(self, name: str, token: str, seed: int) -> Track:
        origin = Origin.made(self.server.folder / "repos" / "acme" / f"{name}.git")
        host_log = TailedLog(origin, self.server.folder / f"host-{name}")
        queue = QUEUE | {"repo": QUEUE["repo"] | {"name": name}}
        return Track(origin, host_log, MeasuredApi(self.server, token, host_log, queue), f"{seed} {name}")

    def open(self) -> None:
        self.server.start()
        for track, settings in zip(self.tracks, QUEUES.values(), strict=True):
            track.create_queue(**BATCHED, **settings)
        self.tracks[0].api.post("createWebhook", url=self._receiver.url)

    @property
    def ended(self) -> int:
        return sum(track.ended for track in self.tracks)

    def hear(self) -> None:
        """Remembers of what was received only who ended."""
        heard = len(self._receiver.receipts)
        events = [receipt.payload for receipt in self._receiver.receipts[:heard]]
        del self._receiver.receipts[:heard]
        ends = (event["data"] for event in events if event["type"] in ENDS)
        self.ends_told |= {(data["repository"], data["pr_number"]) for data in ends}

    def everybody_was_told(self) -> bool:
        self.hear()
        return len(self.ends_told) == self.ended

    def look_after(self) -> None:
        """Whoever has a host looks after its repositories. Where somebody is just writing, they come again."""
        for track in self.tracks:
            subprocess.run(["git", "--git-dir", track.origin.url, *UPKEEP], check=False, capture_output=True)

    def close(self) -> None:
        for track in self.tracks:
            track.api.close()
        if self.server.alive:
            self.server.stop()


@contextmanager
def opened(folder: Path, seed: int) -> Generator[Grounds]:
    """What it leaves behind is kept only when something went wrong."""
    with Receiver().open() as receiver:
        grounds = Grounds(folder, seed, receiver)
        try:
            grounds.open()
            yield grounds
        finally:
            grounds.close()
    shutil.rmtree(folder)
