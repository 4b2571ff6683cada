"""Speaks with the other replicas: what one has saved is a word to all, and a word is only a reason to look."""

import asyncio

import msgspec
import structlog
from msgspec import Struct

from mergeyard.domain.ids import PrNumber, QueueId, Sha
from mergeyard.domain.queue import Queue
from mergeyard.domain.repositories import Repo
from mergeyard.ports.sharing import SharedStore
from mergeyard.ports.store import StoreTrouble
from mergeyard.service.background import Background
from mergeyard.service.turn import Keeper

log = structlog.get_logger()


class QueueSaved(Struct, frozen=True, tag="queue", array_like=True):
    repo: Repo
    queue: QueueId
    version: int


class StatusKept(Struct, frozen=True, tag="status", array_like=True):
    repo: Repo
    sha: Sha


class PullHeard(Struct, frozen=True, tag="pull", array_like=True):
    """Something was said or done on a pull request."""

    repo: Repo
    number: PrNumber


class CommitHeard(Struct, frozen=True, tag="commit", array_like=True):
    """Its checks may have changed at the host."""

    repo: Repo
    sha: Sha


class DutiesFree(Struct, frozen=True, tag="duties", array_like=True):
    """A repository is waiting for somebody to work for it."""


Word = QueueSaved | StatusKept | PullHeard | CommitHeard | DutiesFree


read = msgspec.json.Decoder[Word](Word).decode


class Others:
    def __init__(self, shared: SharedStore | None, background: Background) -> None:
        self._shared = shared
        self._background = background
        self._words: dict[Word, None] = {}
        self._calling: asyncio.Task[None] | None = None
        self._versions: dict[QueueId, int] = {}
        """Of which everybody has heard, be it from this replica or from another."""

    def follow(self, keeper: Keeper, _: Queue | None) -> None:
        if self._shared is not None and keeper.version > self._versions.get(keeper.id, 0):
            self._versions[keeper.id] = keeper.version
            self.tell(QueueSaved(keeper.key.repo, keeper.id, keeper.version))

    def heard(self, saved: QueueSaved) -> None:
        self._versions[saved.queue] = max(saved.version, self._versions.get(saved.queue, 0))

    def tell(self, word: Word) -> None:
        """Words that come up while others are being called out go together."""
        if self._shared is None:
            return
        self._words[word] = None
        if self._calling is None or self._calling.done():
            self._calling = self._background.start(self._call_out(self._shared))

    async def _call_out(self, shared: SharedStore) -> None:
        try:
            while self._words:
                words, self._words = self._words, {}
                await shared.call_out(*map(written, words))
        except StoreTrouble as trouble:
            self._words = {}
            log.warning("the other replicas were not told", words=str(trouble))


def written(word: Word) -> str:
    return msgspec.json.encode(word).decode()
