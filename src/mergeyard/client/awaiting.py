"""The client for programs that do other things while they wait."""

import asyncio
from collections.abc import AsyncIterator
from typing import Self, TypeVar, assert_never

import httpx

from mergeyard.client import connecting
from mergeyard.client.calls import Awaiting, Calls
from mergeyard.client.retrying import Patience
from mergeyard.client.steps import Pause, Reply, Sending, Silence, Talk
from mergeyard.client.talking import Series, ask

Answer = TypeVar("Answer")
Page = TypeVar("Page")
Item = TypeVar("Item")


class AsyncClient(Calls, Awaiting):
    """`async with AsyncClient("https://queue.example.com", token) as client: await client.submit(queue, 12)`."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        patience: Patience | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.patience = patience or Patience()
        self._http = httpx.AsyncClient(**connecting.options(url, token), transport=transport)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    async def hold(self, talk: Talk[Answer]) -> Answer:
        heard = None
        while True:
            try:
                step = talk.send(heard)
            except StopIteration as end:
                return end.value
            match step:
                case Sending():
                    heard = await self._send(step)
                case Pause():
                    heard = await asyncio.sleep(step.seconds)
                case _:
                    assert_never(step)

    async def walk(self, series: Series[Page, Item]) -> AsyncIterator[Item]:
        request = series.first
        while request is not None:
            page = await self.hold(ask(self.patience, request))
            for item in series.items(page):
                yield item
            request = series.then(page)

    async def _send(self, sending: Sending) -> Reply | Silence:
        try:
            return connecting.reply(await self._http.request(**connecting.arguments(sending)))
        except httpx.RequestError as trouble:
            return connecting.silence(trouble)
