"""The client for programs that wait for each answer."""

import time
from collections.abc import Iterator
from typing import Self, TypeVar, assert_never

import httpx

from mergeyard.client import connecting
from mergeyard.client.calls import Blocking, Calls
from mergeyard.client.retrying import Patience
from mergeyard.client.steps import Pause, Reply, Sending, Silence, Talk
from mergeyard.client.talking import Series, ask

Answer = TypeVar("Answer")
Page = TypeVar("Page")
Item = TypeVar("Item")


class Client(Calls, Blocking):
    """`with Client("https://queue.example.com", token) as client: client.submit(queue, 12)`."""

    def __init__(
        self, url: str, token: str, *, patience: Patience | None = None, transport: httpx.BaseTransport | None = None
    ) -> None:
        self.patience = patience or Patience()
        self._http = httpx.Client(**connecting.options(url, token), transport=transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def hold(self, talk: Talk[Answer]) -> Answer:
        heard = None
        while True:
            try:
                step = talk.send(heard)
            except StopIteration as end:
                return end.value
            match step:
                case Sending():
                    heard = self._send(step)
                case Pause():
                    heard = time.sleep(step.seconds)
                case _:
                    assert_never(step)

    def walk(self, series: Series[Page, Item]) -> Iterator[Item]:
        request = series.first
        while request is not None:
            page = self.hold(ask(self.patience, request))
            yield from series.items(page)
            request = series.then(page)

    def _send(self, sending: Sending) -> Reply | Silence:
        try:
            return connecting.reply(self._http.request(**connecting.arguments(sending)))
        except httpx.RequestError as trouble:
            return connecting.silence(trouble)
