"""Broadcasts hints between replicas (LISTEN/NOTIFY). Hints may be lost; a receiver always re-reads the store."""

import asyncio

import msgspec
import structlog
from msgspec import Struct

from mergeyard.domain.ids import PullRequestNumber, QueueId, Repo, Sha
from mergeyard.domain.queue import Queue
from mergeyard.ports.store import SharedStore, StoreUnavailable
from mergeyard.service.background import Background
from mergeyard.service.queue_actor import QueueActor

log = structlog.get_logger()


class QueueSaved(Struct, frozen=True, tag="queue", array_like=True):
    repo: Repo
    queue: QueueId
    version: int


class StatusSaved(Struct, frozen=True, tag="status", array_like=True):
    repo: Repo
    sha: Sha


class PullRequestNoticeReceived(Struct, frozen=True, tag="pull_request", array_like=True):
    """A forge reported a change or a comment on a pull request."""

    repo: Repo
    number: PullRequestNumber


class CommitNoticeReceived(Struct, frozen=True, tag="commit", array_like=True):
    """A forge reported that a check of the commit changed."""

    repo: Repo
    sha: Sha
    check: str | None = None


class LeaseReleased(Struct, frozen=True, tag="lease", array_like=True):
    """No replica holds the lease of some repository: it can be claimed."""


Hint = QueueSaved | StatusSaved | PullRequestNoticeReceived | CommitNoticeReceived | LeaseReleased


decode_hint = msgspec.json.Decoder[Hint](Hint).decode


class ReplicaBus:
    def __init__(self, shared: SharedStore | None, background: Background) -> None:
        """Without a shared store there are no other replicas, and no hint is sent."""
        self._shared = shared
        self._background = background
        self._outbox: dict[Hint, None] = {}
        self._sending: asyncio.Task[None] | None = None
        self._announced_versions: dict[QueueId, int] = {}
        """The newest version of each queue that this or another replica has announced."""

    def on_change(self, queue_actor: QueueActor, _: Queue | None) -> None:
        if self._shared is not None and queue_actor.version > self._announced_versions.get(queue_actor.id, 0):
            self._announced_versions[queue_actor.id] = queue_actor.version
            self.publish(QueueSaved(queue_actor.key.repo, queue_actor.id, queue_actor.version))

    def record_announced(self, saved: QueueSaved) -> None:
        """A version that another replica announced is not announced again when it is loaded here."""
        self._announced_versions[saved.queue] = max(saved.version, self._announced_versions.get(saved.queue, 0))

    def publish(self, hint: Hint) -> None:
        """Hints that are added while others are being sent go out together, each once."""
        if self._shared is None:
            return
        self._outbox[hint] = None
        if self._sending is None or self._sending.done():
            self._sending = self._background.start(self._send(self._shared))

    async def _send(self, shared: SharedStore) -> None:
        try:
            while self._outbox:
                hints, self._outbox = self._outbox, {}
                await shared.notify(*map(encode_hint, hints))
        except StoreUnavailable as error:
            self._outbox = {}
            log.warning("replica_hints_lost", error=str(error))


def encode_hint(hint: Hint) -> str:
    return msgspec.json.encode(hint).decode()
