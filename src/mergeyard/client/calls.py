"""Every call of the client, written once: on `Client` it gives the answer, on `AsyncClient` something to await."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from mergeyard.client import requests, talking, webhook_requests
from mergeyard.client.request import Request
from mergeyard.client.retrying import Patience
from mergeyard.client.steps import Talk
from mergeyard.client.talking import Series

P = ParamSpec("P")
Answer = TypeVar("Answer")
Page = TypeVar("Page")
Item = TypeVar("Item")


class Blocking(ABC):
    patience: Patience

    @abstractmethod
    def hold(self, talk: Talk[Answer]) -> Answer:
        """Does what the talk says, until it ends."""

    @abstractmethod
    def walk(self, series: Series[Page, Item]) -> Iterator[Item]: ...


class Awaiting(ABC):
    patience: Patience

    @abstractmethod
    async def hold(self, talk: Talk[Answer]) -> Answer: ...

    @abstractmethod
    def walk(self, series: Series[Page, Item]) -> AsyncIterator[Item]: ...


class Call(Generic[P, Answer]):
    """A talk with the server that ends with an answer."""

    def __init__(self, begin: Callable[Concatenate[Patience, P], Talk[Answer]]) -> None:
        self._begin = begin

    @overload
    def __get__(self, client: Blocking, kind: object) -> Callable[P, Answer]: ...
    @overload
    def __get__(self, client: Awaiting, kind: object) -> Callable[P, Awaitable[Answer]]: ...
    def __get__(self, client: Blocking | Awaiting, kind: object) -> Callable[P, Any]:
        @wraps(self._begin)
        def call(*args: P.args, **kwargs: P.kwargs) -> Any:
            return client.hold(self._begin(client.patience, *args, **kwargs))

        return call


class Walk(Generic[P, Item]):
    """A series that is walked through, page by page."""

    def __init__(self, series: Callable[P, Series[Any, Item]]) -> None:
        self._series = series

    @overload
    def __get__(self, client: Blocking, kind: object) -> Callable[P, Iterator[Item]]: ...
    @overload
    def __get__(self, client: Awaiting, kind: object) -> Callable[P, AsyncIterator[Item]]: ...
    def __get__(self, client: Blocking | Awaiting, kind: object) -> Callable[P, Any]:
        @wraps(self._series)
        def walk(*args: P.args, **kwargs: P.kwargs) -> Any:
            return client.walk(self._series(*args, **kwargs))

        return walk


def question(request: Callable[P, Request[Answer]]) -> Call[P, Answer]:
    """A talk of one question and its answer."""

    @wraps(request)
    def begin(patience: Patience, /, *args: P.args, **kwargs: P.kwargs) -> Talk[Answer]:
        return talking.ask(patience, request(*args, **kwargs))

    return Call(begin)


class Calls:
    submit = question(requests.submit)
    cancel = question(requests.cancel)
    restart = question(requests.restart)
    get_pull_request = question(requests.get_pull_request)
    find_pull_request = question(requests.find_pull_request)
    get_pull_requests = question(requests.get_pull_requests)
    list_pull_requests = question(requests.list_pull_requests)
    set_impacted_targets = question(requests.set_impacted_targets)
    wait = Call(talking.wait)

    get_run = question(requests.get_run)
    list_results = question(requests.list_results)
    report_status = question(requests.report_status)

    create_queue = question(requests.create_queue)
    get_queue = question(requests.get_queue)
    list_queues = question(requests.list_queues)
    update_queue = question(requests.update_queue)
    delete_queue = question(requests.delete_queue)
    get_metrics = question(requests.get_metrics)
    verify_landings = question(requests.verify_landings)
    replay_queue = question(requests.replay_queue)

    list_events = question(requests.list_events)
    events = Walk(talking.events)

    create_webhook = question(webhook_requests.create_webhook)
    list_webhooks = question(webhook_requests.list_webhooks)
    update_webhook = question(webhook_requests.update_webhook)
    delete_webhook = question(webhook_requests.delete_webhook)
    test_webhook = question(webhook_requests.test_webhook)
    list_deliveries = question(webhook_requests.list_deliveries)
    resend_event = question(webhook_requests.resend_event)
