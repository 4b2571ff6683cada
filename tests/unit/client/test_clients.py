"""Both clients do the same: each test speaks with the one that waits, and with the one that awaits."""

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from msgspec import json

from mergeyard.client import AsyncClient, Client, MergeyardError, Patience, QueueName, Unreachable
from tests.support.answers import EVENT, SUBMITTED, problem

QUEUE = QueueName.of("git.local/acme/app", "main")
URL = "http://yard.example/below"
NOT_LONG = Patience(altogether=0.3)

Answering = Callable[[httpx.Request], httpx.Response]
Asking = Callable[[Answering, str], Any]


def waiting(answering: Answering, call: str) -> Any:
    with Client(URL, "my_token", patience=NOT_LONG, transport=httpx.MockTransport(answering)) as client:
        return getattr(client, call)(QUEUE, 12)


def awaiting(answering: Answering, call: str) -> Any:
    async def asked() -> Any:
        transport = httpx.MockTransport(answering)
        async with AsyncClient(URL, "my_token", patience=NOT_LONG, transport=transport) as client:
            return await getattr(client, call)(QUEUE, 12)

    return asyncio.run(asked())


both = pytest.mark.parametrize("ask", [waiting, awaiting], ids=["Client", "AsyncClient"])


class Server:
    """Answers one after the other, and keeps what it was asked."""

    def __init__(self, *answers: tuple[int, Any]) -> None:
        self.asked: list[httpx.Request] = []
        self._answers = list(answers)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        status, body = self._answers.pop(0)
        return httpx.Response(status, content=json.encode(body))


@both
def test_a_call_gives_the_answer(ask: Asking):
    server = Server((200, SUBMITTED))
    assert ask(server, "submit").pr_title == SUBMITTED["prTitle"]
    (request,) = server.asked
    assert str(request.url) == f"{URL}/v1/submitPullRequest"
    assert request.headers["x-api-token"] == "my_token"
    assert len(request.headers["idempotency-key"]) == 32


@both
def test_a_call_is_repeated_while_that_may_help(ask: Asking):
    server = Server((503, problem("storage_unavailable", retryable=True)), (200, SUBMITTED))
    assert ask(server, "cancel").pr_number == 123
    assert len({request.headers["idempotency-key"] for request in server.asked}) == 1


@both
def test_a_refusal_is_raised(ask: Asking):
    with pytest.raises(MergeyardError, match="pr_closed"):
        ask(Server((409, problem("pr_closed", retryable=False))), "submit")


@both
def test_somebody_who_cannot_be_reached_is_told_after_patience_ended(ask: Asking):
    def refuse(_: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("Connection refused")

    with pytest.raises(Unreachable, match="Connection refused"):
        ask(refuse, "submit")


@both
def test_who_may_still_be_at_work_is_not_called_away(ask: Asking):
    def linger(_: httpx.Request) -> httpx.Response:
        raise httpx.ReadTimeout("timed out")

    with pytest.raises(Unreachable, match="It may still be at work: look before you ask again"):
        ask(linger, "submit")


@both
def test_a_redirect_is_not_followed_because_the_token_is_for_this_server(ask: Asking):
    def elsewhere(_: httpx.Request) -> httpx.Response:
        return httpx.Response(308, headers={"location": "https://elsewhere.example"})

    with pytest.raises(Unreachable, match="308"):
        ask(elsewhere, "cancel")


@both
def test_waiting_ends_with_the_stay(ask: Asking):
    over = SUBMITTED | {"state": "failed", "isCurrentlySubmittedToQueue": False}
    assert ask(Server((200, SUBMITTED), (200, over)), "wait").state == "failed"


PAGES = [(200, {"events": [EVENT], "next": "1"}), (200, {"events": [EVENT, EVENT], "next": "3"})]


def test_events_come_one_by_one():
    server = Server(*PAGES)
    with Client(URL, "my_token", transport=httpx.MockTransport(server)) as client:
        events = client.events(QUEUE)
        assert [next(events).type for _ in range(3)] == [EVENT["type"]] * 3
    assert [json.decode(request.content).get("after") for request in server.asked] == [None, "1"]


def test_events_can_be_awaited_one_by_one():
    server = Server(*PAGES)

    async def first_three() -> list[str]:
        async with AsyncClient(URL, "my_token", transport=httpx.MockTransport(server)) as client:
            events = client.events(QUEUE)
            return [(await anext(events)).type for _ in range(3)]

    assert asyncio.run(first_three()) == [EVENT["type"]] * 3


@pytest.mark.parametrize("client", [Client, AsyncClient])
@pytest.mark.parametrize("address", ["", "queue.example.com", "ftp://queue.example.com", "http://", "http://x:y"])
def test_what_is_no_address_is_refused_at_once(client: type[Client] | type[AsyncClient], address: str):
    with pytest.raises(ValueError, match=r"write it as https://queue\.example\.com"):
        client(address, "my_token")


@pytest.mark.parametrize("token", ["my_…", "my_a\nb", "my_\x00"])
def test_what_is_no_token_is_refused_at_once_and_not_told(token: str):
    with pytest.raises(ValueError, match="copy it again") as refused:
        Client(URL, token)
    assert token not in str(refused.value)


def test_a_call_knows_its_name_and_what_it_is_for():
    client = Client(URL, "my_token")
    assert client.submit.__name__ == "submit"
    assert (client.submit.__doc__ or "").startswith("Put a pull request into the queue")
    client.close()
