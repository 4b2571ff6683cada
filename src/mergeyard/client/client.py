"""The two clients, blocking and asynchronous, over exchanges that perform no I/O themselves."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import wraps
from time import monotonic
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload
from uuid import uuid4

import httpx2
import msgspec

from mergeyard.client import requests
from mergeyard.client import transport as http
from mergeyard.client.models import Event, SubmittedPullRequest

ResponseT = TypeVar("ResponseT")

MIN_POLL_S = 0.5
MAX_POLL_S = 5.0
LONG_POLL_S = 25
EVENTS_PER_PAGE = 100


def send_with_retries(
    patience: http.RetryPolicy, request: http.Request[ResponseT], now: Callable[[], float] = monotonic
) -> http.Exchange[ResponseT]:
    """Sends the request, and again while a retry can succeed.

    A write carries one idempotency key in all attempts, so the server executes it once.
    A proxy may end a slow request with an error while the server works on it. Such time, up to
    `request.extra_time_s`, does not count against the total timeout.
    """
    sending, attempt = build_http_request(request, patience), 0
    deadline, allowance = now() + patience.total_timeout_s, request.extra_time_s
    while True:
        sent_at = now()
        reply = yield sending
        assert reply is not None
        outcome = http.interpret_reply(request.response, reply)
        if not isinstance(outcome, http.Failure):
            return outcome
        if isinstance(reply, http.Reply):
            elapsed = min(now() - sent_at, allowance)
            deadline, allowance = deadline + elapsed, allowance - elapsed
        pause = http.compute_pause_s(attempt, outcome.retry_after)
        if not outcome.is_retryable or now() + pause > deadline:
            raise outcome.error
        yield http.Pause(pause)
        attempt += 1


def wait_until_concluded(
    patience: http.RetryPolicy, queue: http.QueueName, number: int
) -> http.Exchange[SubmittedPullRequest]:
    """Polls until the pull request is merged, failed or cancelled, and returns it."""
    pause = MIN_POLL_S
    while True:
        pull_request = yield from send_with_retries(patience, requests.get_pull_request(queue, number))
        if pull_request.is_concluded:
            return pull_request
        yield http.Pause(pause)
        pause = min(MAX_POLL_S, 2 * pause)


def build_http_request(request: http.Request[Any], patience: http.RetryPolicy) -> http.SendRequest:
    is_get = request.response is str
    key = {"idempotency-key": uuid4().hex} if request.writes else {}
    return http.SendRequest(
        method="GET" if is_get else "POST",
        path=f"/v1/{request.endpoint}",
        query=request.members if is_get else {},
        content=None if is_get else msgspec.json.encode(request.members),
        headers=key if is_get else {"content-type": "application/json", **key},
        timeout_s=patience.response_timeout_s + request.extra_time_s,
    )


P = ParamSpec("P")


class ExchangeMethod(Generic[P, ResponseT]):
    """A client method that performs an exchange, as a descriptor."""

    def __init__(self, begin: Callable[Concatenate[http.RetryPolicy, P], http.Exchange[ResponseT]]) -> None:
        self._begin = begin

    @overload
    def __get__(self, client: "Client", kind: object) -> Callable[P, ResponseT]: ...
    @overload
    def __get__(self, client: "AsyncClient", kind: object) -> Callable[P, Awaitable[ResponseT]]: ...
    def __get__(self, client: "Client | AsyncClient", kind: object) -> Callable[P, Any]:
        @wraps(self._begin)
        def call(*args: P.args, **kwargs: P.kwargs) -> Any:
            return client.run_exchange(self._begin(client.retry_policy, *args, **kwargs))

        return call


def request_method(request: Callable[P, http.Request[ResponseT]]) -> ExchangeMethod[P, ResponseT]:
    """A client method that sends one request and returns its response."""

    @wraps(request)
    def begin(patience: http.RetryPolicy, /, *args: P.args, **kwargs: P.kwargs) -> http.Exchange[ResponseT]:
        return send_with_retries(patience, request(*args, **kwargs))

    return ExchangeMethod(begin)


class Calls:
    submit = request_method(requests.submit)
    cancel = request_method(requests.cancel)
    restart = request_method(requests.restart)
    preview_action = request_method(requests.preview_action)
    preview_commit_message = request_method(requests.preview_commit_message)
    get_pull_request = request_method(requests.get_pull_request)
    find_pull_request = request_method(requests.find_pull_request)
    get_pull_requests = request_method(requests.get_pull_requests)
    get_provenance = request_method(requests.get_provenance)
    list_pull_requests = request_method(requests.list_pull_requests)
    list_open_pull_requests = request_method(requests.list_open_pull_requests)
    set_impacted_targets = request_method(requests.set_impacted_targets)
    wait = ExchangeMethod(wait_until_concluded)

    get_run = request_method(requests.get_run)
    list_results = request_method(requests.list_results)
    report_status = request_method(requests.report_status)

    create_queue = request_method(requests.create_queue)
    get_queue = request_method(requests.get_queue)
    list_queues = request_method(requests.list_queues)
    update_queue = request_method(requests.update_queue)
    delete_queue = request_method(requests.delete_queue)
    get_metrics = request_method(requests.get_metrics)
    verify_landings = request_method(requests.verify_landings)
    replay_queue = request_method(requests.replay_queue)

    list_events = request_method(requests.list_events)

    create_webhook = request_method(requests.create_webhook)
    list_webhooks = request_method(requests.list_webhooks)
    update_webhook = request_method(requests.update_webhook)
    delete_webhook = request_method(requests.delete_webhook)
    test_webhook = request_method(requests.test_webhook)
    list_deliveries = request_method(requests.list_deliveries)
    resend_event = request_method(requests.resend_event)

    get_current_token = request_method(requests.get_current_token)
    create_token = request_method(requests.create_token)
    list_tokens = request_method(requests.list_tokens)
    revoke_token = request_method(requests.revoke_token)


CONNECT_TIMEOUT_S = 10.0


def build_http_options(url: str, token: str) -> dict[str, Any]:
    """Redirects are not followed: the token must not be sent to another server."""
    if not is_http_url(url):
        raise ValueError(f"{url!r} is not a URL: write it as https://queue.example.com.")
    if not (token.isascii() and token.isprintable()):
        raise ValueError("The token contains invalid characters: copy it again.")
    return {"base_url": url, "headers": {"x-api-token": token, "user-agent": "mergeyard-client"}}


def is_http_url(url: str) -> bool:
    try:
        return httpx2.URL(url).scheme in ("http", "https") and bool(httpx2.URL(url).host)
    except httpx2.InvalidURL:
        return False


def to_request_arguments(sending: http.SendRequest) -> dict[str, Any]:
    return {
        "method": sending.method,
        "url": sending.path,
        "params": sending.query,
        "content": sending.content,
        "headers": sending.headers,
        "timeout": httpx2.Timeout(sending.timeout_s, connect=min(sending.timeout_s, CONNECT_TIMEOUT_S)),
    }


def to_reply(response: httpx2.Response) -> http.Reply:
    retry_after = response.headers.get("retry-after")
    return http.Reply(status=response.status_code, body=response.content, retry_after=retry_after)


ERROR_NUMBER_PATTERN = re.compile(r"^\[Errno -?\d+\] ")
CONNECTION_ERRORS = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
    httpx2.UnsupportedProtocol,
)
"""Nothing was sent."""


def to_no_reply(error: httpx2.RequestError) -> http.NoReply:
    if isinstance(error, httpx2.ReadTimeout):
        return http.NoReply(f"The server did not respond in time. {http.UNKNOWN_OUTCOME}")
    cause = ERROR_NUMBER_PATTERN.sub("", str(error)) or type(error).__name__
    if not isinstance(error, CONNECTION_ERRORS):
        return http.NoReply(f"The server does not respond ({cause}). {http.UNKNOWN_OUTCOME}")
    return http.NoReply(f"The server does not respond ({cause}): check the address, and whether the server is running.")


class AsyncClient(Calls):
    """`async with AsyncClient("https://queue.example.com", token) as client: await client.submit(queue, 12)`."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        retry_policy: http.RetryPolicy | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self.retry_policy = retry_policy or http.RetryPolicy()
        self._http = httpx2.AsyncClient(**build_http_options(url, token), transport=transport)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    async def run_exchange(self, exchange: http.Exchange[ResponseT]) -> ResponseT:
        result = None
        while True:
            try:
                step = exchange.send(result)
            except StopIteration as end:
                return end.value
            result = await (asyncio.sleep(step.seconds) if isinstance(step, http.Pause) else self._send(step))

    async def events(self, queue: http.QueueName, *, after: str | None = None) -> AsyncIterator[Event]:
        """The events after this cursor, and then new events as they happen, without an end."""
        while True:
            page = await self.list_events(queue, after=after, take=EVENTS_PER_PAGE, wait_seconds=LONG_POLL_S)
            for event in page.events:
                yield event
            after = page.next

    async def _send(self, sending: http.SendRequest) -> http.Reply | http.NoReply:
        try:
            return to_reply(await self._http.request(**to_request_arguments(sending)))
        except httpx2.RequestError as error:
            return to_no_reply(error)


class Client(Calls):
    """`with Client("https://queue.example.com", token) as client: client.submit(queue, 12)`."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        retry_policy: http.RetryPolicy | None = None,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        self.retry_policy = retry_policy or http.RetryPolicy()
        self._http = httpx2.Client(**build_http_options(url, token), transport=transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def run_exchange(self, exchange: http.Exchange[ResponseT]) -> ResponseT:
        result = None
        while True:
            try:
                step = exchange.send(result)
            except StopIteration as end:
                return end.value
            result = time.sleep(step.seconds) if isinstance(step, http.Pause) else self._send(step)

    def events(self, queue: http.QueueName, *, after: str | None = None) -> Iterator[Event]:
        """The events after this cursor, and then new events as they happen, without an end."""
        while True:
            page = self.list_events(queue, after=after, take=EVENTS_PER_PAGE, wait_seconds=LONG_POLL_S)
            yield from page.events
            after = page.next

    def _send(self, sending: http.SendRequest) -> http.Reply | http.NoReply:
        try:
            return to_reply(self._http.request(**to_request_arguments(sending)))
        except httpx2.RequestError as error:
            return to_no_reply(error)
