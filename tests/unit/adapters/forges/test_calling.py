"""Calls go only where they should, cost nothing twice, and whatever goes wrong is trouble in plain words."""

import json
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec import Struct

from mergeyard.adapters.forges import calling
from mergeyard.adapters.forges.calling import Caller, words_of
from mergeyard.adapters.forges.limits import Limits
from mergeyard.ports.host import HostRefused, HostTrouble
from tests.support.asynchronous import asynchronous
from tests.support.clock import HandClock
from tests.support.forges.faults import ALWAYS, Answers, Faults, LosesReply
from tests.support.forges.serving import Receive, Scope, Send, answer, body_of, headers_of, served

NOBODY = "http://127.0.0.1:1"
"""Where nothing listens."""


class Thing(Struct, frozen=True):
    name: str


class Forge:
    """Things by their addresses, and all that was sent to it."""

    def __init__(self) -> None:
        self.things: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.heard: list[tuple[str, dict[str, str], bytes]] = []
        self.faults = Faults(self._answer)
        self.url = ""

    def shows(self, address: str, thing: Any, status: int = 200, **headers: str) -> None:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.things[address] = (status, named, json.dumps(thing).encode())

    def plan(self, status: int, headers: Mapping[str, str] | None = None, body: bytes = b"{}", times: int = 1) -> None:
        self.faults.plan(Answers(status, dict(headers or {}), body), times=times)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.heard.append((scope["method"], headers_of(scope), await body_of(receive)))
        query = scope["query_string"].decode()
        address = scope["raw_path"].decode() + (f"?{query}" if query else "")
        status, headers, body = self.things.get(address, (404, {}, b'{"message": "Not Found"}'))
        known = headers.get("etag") and headers_of(scope).get("if-none-match") == headers["etag"]
        await answer(send, 304 if known else status, headers, b"" if known else body)


@pytest.fixture
def forge() -> Generator[Forge]:
    forge = Forge()
    with served(forge.faults) as forge.url:
        yield forge


@asynccontextmanager
async def calls(forge: Forge, path: str = "/api") -> AsyncGenerator[Caller]:
    async def credentials() -> Mapping[str, str]:
        return {"authorization": "Bearer secret"}

    caller = Caller(forge.url + path, credentials, Limits("a forge", HandClock()))
    try:
        yield caller
    finally:
        await caller.close()


# Reading


@asynchronous
async def test_what_is_there_is_read_with_our_credentials(forge: Forge):
    forge.shows("/api/thing?of=a+b", {"name": "one", "size": 7})
    async with calls(forge) as caller:
        assert await caller.get("/thing", Thing, {"of": "a b"}) == Thing("one")
    ((_, headers, _),) = forge.heard
    assert (headers["authorization"], headers["user-agent"]) == ("Bearer secret", "mergeyard")


@pytest.mark.parametrize("status", [404, 410])
@asynchronous
async def test_where_nothing_is_there_is_none(forge: Forge, status: int):
    forge.shows("/api/thing", {}, status)
    async with calls(forge) as caller:
        assert await caller.get("/thing", Thing) is None
        assert await caller.get_now("/thing", Thing) is None
        assert await caller.every("/thing", list[Thing]) == []


@asynchronous
async def test_a_slash_within_a_name_stays_within_it(forge: Forge):
    forge.shows("/api/branches/a%2Fb", {"name": "a/b"})
    async with calls(forge) as caller:
        assert await caller.get("/branches/a%2Fb", Thing) == Thing("a/b")


@asynchronous
async def test_what_has_not_changed_is_not_sent_again_and_what_has_is(forge: Forge):
    forge.shows("/api/thing", {"name": "one"}, etag='"1"')
    async with calls(forge) as caller:
        for _ in range(3):
            assert await caller.get("/thing", Thing) == Thing("one")
        assert [headers.get("if-none-match") for _, headers, _ in forge.heard] == [None, '"1"', '"1"']
        forge.shows("/api/thing", {"name": "two"}, etag='"2"')
        assert await caller.get("/thing", Thing) == Thing("two")


@asynchronous
async def test_each_query_is_remembered_for_itself(forge: Forge):
    forge.shows("/api/thing?page=1", {"name": "one"}, etag='"same"')
    forge.shows("/api/thing?page=2", {"name": "two"}, etag='"same"')
    async with calls(forge) as caller:
        for _ in range(2):
            assert await caller.get("/thing", Thing, {"page": 1}) == Thing("one")
            assert await caller.get("/thing", Thing, {"page": 2}) == Thing("two")


# Lists


@asynchronous
async def test_all_pages_are_read_also_when_they_are_remembered(forge: Forge):
    further = f'<{forge.url}/api/things?page=2>; rel="next", <{forge.url}/api/things?page=2>; rel="last"'
    forge.shows("/api/things?per_page=1", [{"name": "one"}], link=further, etag='"1"')
    forge.shows("/api/things?page=2", [{"name": "two"}], link=f'<{forge.url}/api/things>; rel="first"', etag='"2"')
    async with calls(forge) as caller:
        for _ in range(2):
            assert await caller.every("/things", list[Thing], {"per_page": 1}) == [Thing("one"), Thing("two")]


@pytest.mark.parametrize(
    "elsewhere", ["https://evil.example/api/things", "{url}/apis/things", "{url}/other", "/things"]
)
@asynchronous
async def test_a_next_page_elsewhere_never_gets_our_credentials(forge: Forge, elsewhere: str):
    forge.shows("/api/things", [{"name": "one"}], link=f'<{elsewhere.format(url=forge.url)}>; rel="next"')
    async with calls(forge) as caller:
        with pytest.raises(HostTrouble, match="goes on at"):
            await caller.every("/things", list[Thing])
    assert len(forge.heard) == 1


@asynchronous
async def test_a_list_without_end_is_trouble(forge: Forge):
    forge.shows("/api/things", [], link=f'<{forge.url}/api/things>; rel="next"')
    async with calls(forge) as caller:
        with pytest.raises(HostTrouble, match="pages"):
            await caller.every("/things", list[Thing])


# Changing


@asynchronous
async def test_what_is_sent_arrives_and_the_reply_is_for_the_sender_to_judge(forge: Forge):
    forge.shows("/api/thing", {"message": "no"}, 422)
    async with calls(forge) as caller:
        reply = await caller.send("POST", "/thing", {"name": "ä"})
    ((method, headers, body),) = forge.heard
    assert (method, headers["content-type"], json.loads(body)) == ("POST", "application/json", {"name": "ä"})
    assert (reply.status, reply.fine, words_of(reply.body)) == (422, False, "no")


@asynchronous
async def test_a_reply_that_is_lost_is_trouble_that_tells_why(forge: Forge):
    forge.faults.plan(LosesReply())
    async with calls(forge) as caller:
        with pytest.raises(HostTrouble, match=r"does not answer: .+"):
            await caller.send("POST", "/thing", {})
    assert len(forge.heard) == 1


# Trouble


@pytest.mark.parametrize("status", [401, 403, 408, 422, 429, 500, 502, 503, 504])
@asynchronous
async def test_what_cannot_be_read_now_is_trouble_with_the_forges_words(forge: Forge, status: int):
    forge.plan(status, body=b'{"message": "not\\nnow"}')
    async with calls(forge) as caller:
        with pytest.raises(HostTrouble, match=f"/thing answered {status}: not now"):
            await caller.get("/thing", Thing)


@pytest.mark.parametrize("status", [403, 404, 405, 409, 422])
@asynchronous
async def test_what_will_never_be_done_is_refused(forge: Forge, status: int):
    forge.plan(status)
    async with calls(forge) as caller:
        assert isinstance((await caller.send("PUT", "/thing")).trouble(), HostRefused)


TOO_OFTEN: dict[str, tuple[dict[str, str], bytes]] = {
    "the budget is used up": ({"x-ratelimit-remaining": "0"}, b"{}"),
    "wait so long": ({"retry-after": "60"}, b"{}"),
    "only words": ({}, b'{"message": "You have exceeded a secondary rate limit."}'),
}


@pytest.mark.parametrize(("headers", "body"), TOO_OFTEN.values(), ids=TOO_OFTEN.keys())
@asynchronous
async def test_what_is_forbidden_because_we_ask_too_often_passes_and_is_waited_for(
    forge: Forge, headers: Mapping[str, str], body: bytes
):
    forge.plan(403, headers, body)
    async with calls(forge) as caller:
        with pytest.raises(HostTrouble, match="403") as raised:
            await caller.send("PUT", "/thing")
        assert not isinstance(raised.value, HostRefused)
        with pytest.raises(HostTrouble, match="60 seconds"):
            await caller.send("PUT", "/thing")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@asynchronous
async def test_nobody_is_followed_elsewhere(forge: Forge, status: int):
    forge.plan(status, {"location": f"{forge.url}/elsewhere"}, times=2)
    async with calls(forge) as caller:
        with pytest.raises(HostTrouble, match=str(status)):
            await caller.get("/thing", Thing)
        with pytest.raises(HostTrouble, match=str(status)):
            await caller.send("PUT", "/thing")
    assert forge.heard == []


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"name": 1}', b"\xff", b"[" * 100_000])
@asynchronous
async def test_an_answer_that_makes_no_sense_is_trouble(forge: Forge, body: bytes):
    forge.plan(200, body=body)
    async with calls(forge) as caller:
        with pytest.raises(HostTrouble, match="do not understand"):
            await caller.get("/thing", Thing)


@asynchronous
async def test_an_answer_without_end_is_trouble(forge: Forge):
    forge.plan(200, body=b" " * (calling.LARGEST + 1))
    async with calls(forge) as caller:
        with pytest.raises(HostTrouble, match="more than"):
            await caller.get("/thing", Thing)


@asynchronous
async def test_a_forge_that_is_not_there_is_trouble():
    forge = Forge()
    forge.url = NOBODY
    async with calls(forge) as caller:
        with pytest.raises(HostTrouble, match=r"does not answer: .+"):
            await caller.get("/thing", Thing)


# Limits


@asynchronous
async def test_while_the_forge_wants_silence_nothing_is_sent(forge: Forge):
    forge.plan(429, {"retry-after": "30"})
    async with calls(forge) as caller:
        with pytest.raises(HostTrouble):
            await caller.get("/thing", Thing)
        for ask in (caller.get("/thing", Thing), caller.get_now("/thing", Thing), caller.send("PUT", "/thing")):
            with pytest.raises(HostTrouble, match="30 seconds"):
                await ask
    assert forge.heard == []


@asynchronous
async def test_the_last_of_the_budget_is_for_those_that_must_land(forge: Forge):
    headers = {"x-ratelimit-limit": "5000", "x-ratelimit-remaining": "10", "x-ratelimit-reset": "9999999999"}
    forge.plan(200, headers, b'{"name": "one"}', times=ALWAYS)
    async with calls(forge) as caller:
        assert await caller.get("/thing", Thing)
        with pytest.raises(HostTrouble, match="keep for landings"):
            await caller.get("/thing", Thing)
        with pytest.raises(HostTrouble, match="keep for landings"):
            await caller.every("/things", list[Thing])
        assert await caller.get_now("/thing", Thing)
        assert (await caller.send("PUT", "/thing")).fine


# Words


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"message": "Not\\n  Found"}', "Not Found"),
        (b'{"error": "x"}', "{'error': 'x'}"),
        (b"<h1>Bad gateway</h1>", "<h1>Bad gateway</h1>"),
        (b"", ""),
        (b"\xff", "\N{REPLACEMENT CHARACTER}"),
        (b"x" * 1000, "x" * 300),
        (b"[" * 100_000, "[" * 300),
    ],
)
def test_of_an_error_a_person_reads_its_message(body: bytes, words: str):
    assert words_of(body) == words
