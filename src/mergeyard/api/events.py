"""The endpoint that tells what happened in a queue."""

from msgspec.structs import asdict

from mergeyard.api import answers
from mergeyard.api import requests as r
from mergeyard.api.addressing import Addressing
from mergeyard.api.endpoint import Call
from mergeyard.api.presenting import encode
from mergeyard.domain.instants import SECOND
from mergeyard.service.service import Service
from mergeyard.service.telling.retelling import Told


class EventEndpoints:
    def __init__(self, service: Service) -> None:
        self._retelling = service.retelling
        self._addressing = Addressing(service.sites)

    async def list(self, call: Call) -> bytes:
        asked: r.ListEvents = call.request
        key = self._addressing.queue(call)
        told = await self._retelling.after(key, asked.after, asked.take, asked.wait_seconds * SECOND)
        last = told[-1].cursor if told else asked.after
        return encode(answers.Events(events=tuple(map(_event, told)), next=str(last)))


def _event(told: Told) -> answers.QueueEvent:
    return answers.QueueEvent(cursor=str(told.cursor), message=told.story.message, **asdict(told.story.event))
