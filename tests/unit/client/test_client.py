"""Both clients behave the same: each test uses the blocking and the asynchronous one."""

import asyncio
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from msgspec import json

from mergeyard.client import AsyncClient, Client, MergeyardError, QueueName, RetryPolicy, Unreachable
from tests.support.api_examples import EVENT, SUBMITTED, a_problem

QUEUE = QueueName.of("git.local/acme/app", "main")
URL = "http://queue.example/below"
SHORT_RETRIES = RetryPolicy(total_timeout_s=0.3)

ServerFunction = Callable[[httpx2.Request], httpx2.Response]
CallFunction = Callable[[ServerFunction, str], Any]


def call_blocking(server: ServerFunction, method: str) -> Any:
    with Client(URL, "my_token", retry_policy=SHORT_RETRIES, transport=httpx2.MockTransport(server)) as client:
        return getattr(client, method)(QUEUE, 12)


def call_async(server: ServerFunction, method: str) -> Any:
    async def call_once() -> Any:
        transport = httpx2.MockTransport(server)
        async with AsyncClient(URL, "my_token", retry_policy=SHORT_RETRIES, transport=transport) as client:
            return await getattr(client, method)(QUEUE, 12)

    return asyncio.run(call_once())


both = pytest.mark.parametrize("call", [call_blocking, call_async], ids=["Client", "AsyncClient"])


class Server:
    """Sends these responses one after the other and records the requests."""

    def __init__(self, *responses: tuple[int, Any]) -> None:
        self.requests: list[httpx2.Request] = []
        self._responses = list(responses)

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        status, body = self._responses.pop(0)
        return httpx2.Response(status, content=json.encode(body))


@both
def test_a_call_returns_the_response(call: CallFunction):
    server = Server((200, SUBMITTED))
    assert call(server, "submit").pr_title == SUBMITTED["prTitle"]
    (request,) = server.requests
    assert str(request.url) == f"{URL}/v1/submitPullRequest"
    assert request.headers["x-api-token"] == "my_token"
    assert len(request.headers["idempotency-key"]) == 32


@both
def test_a_call_is_retried_while_the_error_is_retryable(call: CallFunction):
    server = Server((503, a_problem("storage_unavailable", retryable=True)), (200, SUBMITTED))
    assert call(server, "cancel").pr_number == 123
    assert len({request.headers["idempotency-key"] for request in server.requests}) == 1


@both
def test_a_refusal_is_raised(call: CallFunction):
    with pytest.raises(MergeyardError, match="pr_closed"):
        call(Server((409, a_problem("pr_closed", retryable=False))), "submit")


@both
def test_an_unreachable_server_is_reported_after_the_timeout(call: CallFunction):
    def refuse(_: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("Connection refused")

    with pytest.raises(Unreachable, match="Connection refused"):
        call(refuse, "submit")


@both
def test_a_request_that_may_still_be_in_progress_is_not_retried(call: CallFunction):
    def time_out(_: httpx2.Request) -> httpx2.Response:
        raise httpx2.ReadTimeout("timed out")

    with pytest.raises(Unreachable, match="The request may still be in progress: check before you repeat it"):
        call(time_out, "submit")


@pytest.mark.parametrize(
    "error", [httpx2.ReadError("reset"), httpx2.RemoteProtocolError("closed"), httpx2.WriteError("x")]
)
@both
def test_a_request_that_was_sent_may_be_in_progress(call: CallFunction, error: httpx2.RequestError):
    def fail(_: httpx2.Request) -> httpx2.Response:
        raise error

    with pytest.raises(Unreachable, match="The request may still be in progress: check before you repeat it"):
        call(fail, "submit")


@both
def test_a_request_that_a_proxy_gave_up_may_be_in_progress(call: CallFunction):
    with pytest.raises(Unreachable, match=r"504 is not from Mergeyard\. The request may still be in progress"):
        call(lambda _: httpx2.Response(504, text="Gateway Timeout"), "submit")


@both
def test_a_redirect_is_not_followed_because_the_token_is_for_this_server(call: CallFunction):
    def redirect(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(308, headers={"location": "https://elsewhere.example"})

    with pytest.raises(Unreachable, match="308"):
        call(redirect, "cancel")


@both
def test_waiting_ends_with_the_submission(call: CallFunction):
    concluded = SUBMITTED | {"state": "failed", "isCurrentlySubmittedToQueue": False}
    assert call(Server((200, SUBMITTED), (200, concluded)), "wait").state == "failed"


PAGES = [(200, {"events": [EVENT], "next": "1"}), (200, {"events": [EVENT, EVENT], "next": "3"})]


def cursors_of(server: Server) -> list[str | None]:
    return [json.decode(request.content).get("after") for request in server.requests]


def test_events_come_one_by_one():
    server = Server(*PAGES)
    with Client(URL, "my_token", transport=httpx2.MockTransport(server)) as client:
        events = client.events(QUEUE)
        assert [next(events).type for _ in range(3)] == [EVENT["type"]] * 3
    assert cursors_of(server) == [None, "1"]


def test_events_can_be_awaited_one_by_one():
    server = Server(*PAGES)

    async def first_three() -> list[str]:
        async with AsyncClient(URL, "my_token", transport=httpx2.MockTransport(server)) as client:
            events = client.events(QUEUE, after="7")
            return [(await anext(events)).type for _ in range(3)]

    assert asyncio.run(first_three()) == [EVENT["type"]] * 3
    assert cursors_of(server) == ["7", "1"]


@pytest.mark.parametrize("client", [Client, AsyncClient])
@pytest.mark.parametrize("address", ["", "queue.example.com", "ftp://queue.example.com", "http://", "http://x:y"])
def test_an_invalid_address_is_refused_at_once(client: type[Client] | type[AsyncClient], address: str):
    with pytest.raises(ValueError, match=r"write it as https://queue\.example\.com"):
        client(address, "my_token")


@pytest.mark.parametrize("token", ["my_…", "my_a\nb", "my_\x00"])
def test_an_invalid_token_is_refused_at_once_and_not_repeated(token: str):
    with pytest.raises(ValueError, match="copy it again") as refused:
        Client(URL, token)
    assert token not in str(refused.value)


def test_a_call_has_a_name_and_a_docstring():
    client = Client(URL, "my_token")
    assert client.submit.__name__ == "submit"
    assert (client.submit.__doc__ or "").startswith("Submit a pull request to the queue")
    client.close()
