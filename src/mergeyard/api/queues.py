"""The endpoints about queues."""

from msgspec import UnsetType
from msgspec.structs import replace

from mergeyard.api import answers, metrics_text, presenting
from mergeyard.api import requests as r
from mergeyard.api.addressing import Addressing
from mergeyard.api.endpoint import Call
from mergeyard.api.presenting import encode
from mergeyard.api.wire import RepoReference
from mergeyard.domain.config import Config
from mergeyard.domain.states import QueueState
from mergeyard.service.errors import Code, Refused
from mergeyard.service.journaling import actor_of
from mergeyard.service.service import Service
from mergeyard.service.views import QueueView


class QueueEndpoints:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._addressing = Addressing(service.sites)

    async def create(self, call: Call) -> bytes:
        asked: r.Settling = call.request
        config = replace(Config(), **asked.given)
        key = self._addressing.new_queue(call)
        return await self._service.queues.create(key, config, actor_of(call.token), _shown_whole, call.repeat)

    async def update(self, call: Call) -> bytes:
        asked: r.Updating = call.request
        key = self._addressing.queue(call)
        state = None if isinstance(asked.state, UnsetType) else QueueState(asked.state)
        queues = self._service.queues
        return await queues.update(key, asked.given, state, actor_of(call.token), _shown, call.repeat)

    async def settle(self, call: Call) -> None:
        """Also whoever asks a second time can rely on the pause."""
        asked: r.Updating = call.request
        if asked.state == QueueState.PAUSED:
            await self._service.queues.rest(self._addressing.queue(call))

    async def get(self, call: Call) -> bytes:
        return _shown_whole(await self._service.queues.show(self._addressing.queue(call)))

    async def delete(self, call: Call) -> bytes:
        key = self._addressing.queue(call)
        answer = encode(answers.QueueDeleted(repo=RepoReference.to(key.repo), target_branch=key.branch))
        return await self._service.queues.delete(key, actor_of(call.token), answer, call.repeat)

    async def list(self, call: Call) -> bytes:
        views = await self._service.queues.seen_by(call.token)
        return encode(answers.Queues(queues=tuple(map(presenting.queue, views))))

    async def metrics(self, call: Call) -> bytes:
        asked: r.GetMergeQueueMetrics = call.request
        repo = None if asked.only is None else self._addressing.repo(call, asked.only)
        figures = await self._service.counting.of_queues(call.token, repo)
        if repo is not None and not figures:
            raise Refused(Code.QUEUE_NOT_FOUND, f"There is no queue for {repo}: create one with createQueue.")
        return metrics_text.written(figures)


def _shown_whole(view: QueueView) -> bytes:
    return encode(presenting.queue_with_pulls(view))


def _shown(view: QueueView) -> bytes:
    return encode(presenting.queue(view))
