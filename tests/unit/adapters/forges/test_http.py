"""Requests to a forge: addresses and credentials, pages, caching, errors and rate limits."""

import json
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec import Struct

from mergeyard.adapters.forges import http
from mergeyard.adapters.forges.http import (
    ENTRY_OVERHEAD_BYTES,
    CachedResponse,
    ForgeClient,
    ResponseCache,
    extract_error_detail,
)
from mergeyard.adapters.forges.rate_limits import RateLimits
from mergeyard.domain.ids import Repo
from mergeyard.ports.forge import HostRefused, HostUnavailable
from tests.support.asynchronous import asynchronous
from tests.support.clock import ManualClock
from tests.support.forges.faults import ALWAYS, Faults, LosesResponse, RespondsWith
from tests.support.http_server import Receive, Scope, Send, read_body, read_headers, respond, serve_in_thread

NO_SERVER = "http://127.0.0.1:1"
"""Where nothing listens."""


class Thing(Struct, frozen=True):
    name: str


class Forge:
    """Serves things by their addresses and records all requests."""

    def __init__(self) -> None:
        self.things: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        self.faults = Faults(self._answer)
        self.url = ""

    def serve(self, address: str, thing: Any, status: int = 200, **headers: str) -> None:
        renamed = {name.replace("_", "-"): value for name, value in headers.items()}
        self.things[address] = (status, renamed, json.dumps(thing).encode())

    def plan(self, status: int, headers: Mapping[str, str] | None = None, body: bytes = b"{}", times: int = 1) -> None:
        self.faults.plan(RespondsWith(status, dict(headers or {}), body), times=times)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.requests.append((scope["method"], read_headers(scope), await read_body(receive)))
        query = scope["query_string"].decode()
        address = scope["raw_path"].decode() + (f"?{query}" if query else "")
        status, headers, body = self.things.get(address, (404, {}, b'{"message": "Not Found"}'))
        known = headers.get("etag") and read_headers(scope).get("if-none-match") == headers["etag"]
        await respond(send, 304 if known else status, headers, b"" if known else body)


@pytest.fixture
def forge() -> Generator[Forge]:
    forge = Forge()
    with serve_in_thread(forge.faults) as forge.url:
        yield forge


@asynccontextmanager
async def open_client(forge: Forge, path: str = "/api") -> AsyncGenerator[ForgeClient]:
    async def credentials() -> Mapping[str, str]:
        return {"authorization": "Bearer secret"}

    client = ForgeClient(forge.url + path, credentials, RateLimits("a forge", ManualClock()))
    try:
        yield client
    finally:
        await client.close()


# Reading


@asynchronous
async def test_an_object_is_read_with_the_credentials(forge: Forge):
    forge.serve("/api/thing?of=a+b", {"name": "one", "size": 7})
    async with open_client(forge) as client:
        assert await client.get("/thing", Thing, {"of": "a b"}) == Thing("one")
    ((_, headers, _),) = forge.requests
    assert (headers["authorization"], headers["user-agent"]) == ("Bearer secret", "mergeyard")


@pytest.mark.parametrize("status", [404, 410])
@asynchronous
async def test_a_missing_object_is_none(forge: Forge, status: int):
    forge.serve("/api/thing", {}, status)
    async with open_client(forge) as client:
        assert await client.get("/thing", Thing) is None
        assert await client.get("/thing", Thing, urgent=True) is None
        assert await client.get_all("/thing", list[Thing]) == []


@asynchronous
async def test_an_escaped_slash_in_a_name_stays_escaped(forge: Forge):
    forge.serve("/api/branches/a%2Fb", {"name": "a/b"})
    async with open_client(forge) as client:
        assert await client.get("/branches/a%2Fb", Thing) == Thing("a/b")


@asynchronous
async def test_an_unchanged_object_is_not_sent_again_and_a_changed_one_is(forge: Forge):
    forge.serve("/api/thing", {"name": "one"}, etag='"1"')
    async with open_client(forge) as client:
        for _ in range(3):
            assert await client.get("/thing", Thing) == Thing("one")
        assert [headers.get("if-none-match") for _, headers, _ in forge.requests] == [None, '"1"', '"1"']
        forge.serve("/api/thing", {"name": "two"}, etag='"2"')
        assert await client.get("/thing", Thing) == Thing("two")


@asynchronous
async def test_each_query_is_cached_separately(forge: Forge):
    forge.serve("/api/thing?page=1", {"name": "one"}, etag='"same"')
    forge.serve("/api/thing?page=2", {"name": "two"}, etag='"same"')
    async with open_client(forge) as client:
        for _ in range(2):
            assert await client.get("/thing", Thing, {"page": 1}) == Thing("one")
            assert await client.get("/thing", Thing, {"page": 2}) == Thing("two")


# Lists


@asynchronous
async def test_all_pages_are_read_also_when_they_are_cached(forge: Forge):
    further = f'<{forge.url}/api/things?page=2>; rel="next", <{forge.url}/api/things?page=2>; rel="last"'
    forge.serve("/api/things?per_page=1", [{"name": "one"}], link=further, etag='"1"')
    forge.serve("/api/things?page=2", [{"name": "two"}], link=f'<{forge.url}/api/things>; rel="first"', etag='"2"')
    async with open_client(forge) as client:
        for _ in range(2):
            assert await client.get_all("/things", list[Thing], {"per_page": 1}) == [Thing("one"), Thing("two")]


@pytest.mark.parametrize(
    "elsewhere", ["https://evil.example/api/things", "{url}/apis/things", "{url}/other", "/things"]
)
@asynchronous
async def test_a_next_page_elsewhere_never_gets_our_credentials(forge: Forge, elsewhere: str):
    forge.serve("/api/things", [{"name": "one"}], link=f'<{elsewhere.format(url=forge.url)}>; rel="next"')
    async with open_client(forge) as client:
        with pytest.raises(HostUnavailable, match="the next page of"):
            await client.get_all("/things", list[Thing])
    assert len(forge.requests) == 1


@asynchronous
async def test_an_endless_list_is_an_error(forge: Forge):
    forge.serve("/api/things", [], link=f'<{forge.url}/api/things>; rel="next"')
    async with open_client(forge) as client:
        with pytest.raises(HostUnavailable, match="pages"):
            await client.get_all("/things", list[Thing])


@asynchronous
async def test_the_first_pages_of_a_list_can_be_read_alone(forge: Forge):
    forge.serve("/api/things", [{"name": "one"}], link=f'<{forge.url}/api/things>; rel="next"')
    async with open_client(forge) as client:
        assert await client.get_all("/things", list[Thing], first_pages=3) == [Thing("one")] * 3
    assert len(forge.requests) == 3


# Repositories


REPO = Repo("a forge", "acme", "app")


@asynchronous
async def test_paths_of_a_repository_are_relative_to_it(forge: Forge):
    forge.serve("/api/repos/app", {"name": "app"})
    forge.serve("/api/repos/app/thing", {"name": "one"})
    async with open_client(forge) as client:
        app = client.for_repository(REPO, "/repos/app")
        assert await app.read_repository(Thing) == Thing("app")
        assert await app.get("/thing", Thing) == Thing("one")
        assert (await app.send("PUT", "/thing")).is_success
        assert await app.get("/other", Thing) is None
        assert await app.get_all("/others", list[Thing]) == []
        assert (await app.send("PUT", "/other")).status == 404


@asynchronous
async def test_nothing_is_missing_in_a_repository_that_is_not_visible(forge: Forge):
    async with open_client(forge) as client:
        app = client.for_repository(REPO, "/repos/app")
        assert await app.get("", Thing) is None
        for ask in (
            app.read_repository(Thing),
            app.get("/thing", Thing),
            app.get_all("/things", list[Thing]),
            app.send("PUT", "/thing"),
        ):
            with pytest.raises(HostUnavailable, match="a forge/acme/app is not visible to us: give") as error:
                await ask
            assert not isinstance(error.value, HostRefused)


# Changing


@asynchronous
async def test_a_sent_body_arrives_and_the_reply_is_returned_to_the_caller(forge: Forge):
    forge.serve("/api/thing", {"message": "no"}, 422)
    async with open_client(forge) as client:
        reply = await client.send("POST", "/thing", {"name": "ä"})
    ((method, headers, body),) = forge.requests
    assert (method, headers["content-type"], json.loads(body)) == ("POST", "application/json", {"name": "ä"})
    assert (reply.status, reply.is_success, extract_error_detail(reply.body)) == (422, False, "no")


@asynchronous
async def test_a_lost_reply_is_an_error_with_its_cause(forge: Forge):
    forge.faults.plan(LosesResponse())
    async with open_client(forge) as client:
        with pytest.raises(HostUnavailable, match=r"does not answer: .+"):
            await client.send("POST", "/thing", {})
    assert len(forge.requests) == 1


# Errors


@pytest.mark.parametrize("status", [401, 403, 408, 422, 429, 500, 502, 503, 504])
@asynchronous
async def test_a_failed_read_is_an_error_with_the_message_of_the_forge(forge: Forge, status: int):
    forge.plan(status, body=b'{"message": "not\\nnow"}')
    async with open_client(forge) as client:
        with pytest.raises(HostUnavailable, match=f"/thing answered {status}: not now"):
            await client.get("/thing", Thing)


@pytest.mark.parametrize("status", [403, 404, 405, 409, 422])
@asynchronous
async def test_a_permanent_refusal_is_a_host_refused_error(forge: Forge, status: int):
    forge.plan(status)
    async with open_client(forge) as client:
        assert isinstance((await client.send("PUT", "/thing")).to_error(), HostRefused)


RATE_LIMITED: dict[str, tuple[dict[str, str], bytes]] = {
    "the budget is used up": ({"x-ratelimit-remaining": "0"}, b"{}"),
    "retry after": ({"retry-after": "60"}, b"{}"),
    "only a message": ({}, b'{"message": "You have exceeded a secondary rate limit."}'),
}


@pytest.mark.parametrize(("headers", "body"), RATE_LIMITED.values(), ids=RATE_LIMITED.keys())
@asynchronous
async def test_a_rate_limited_request_is_temporary_and_delays_the_next(
    forge: Forge, headers: Mapping[str, str], body: bytes
):
    forge.plan(403, headers, body)
    async with open_client(forge) as client:
        with pytest.raises(HostUnavailable, match="403") as raised:
            await client.send("PUT", "/thing")
        assert not isinstance(raised.value, HostRefused)
        with pytest.raises(HostUnavailable, match="60 seconds"):
            await client.send("PUT", "/thing")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@asynchronous
async def test_redirects_are_not_followed(forge: Forge, status: int):
    forge.plan(status, {"location": f"{forge.url}/elsewhere"}, times=2)
    async with open_client(forge) as client:
        with pytest.raises(HostUnavailable, match=str(status)):
            await client.get("/thing", Thing)
        with pytest.raises(HostUnavailable, match=str(status)):
            await client.send("PUT", "/thing")
    assert forge.requests == []


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"name": 1}', b"\xff", b"[" * 100_000])
@asynchronous
async def test_an_unexpected_response_is_an_error(forge: Forge, body: bytes):
    forge.plan(200, body=body)
    async with open_client(forge) as client:
        with pytest.raises(HostUnavailable, match="unexpected response from"):
            await client.get("/thing", Thing)


@asynchronous
async def test_an_answer_without_end_is_trouble(forge: Forge):
    forge.plan(200, body=b" " * (http.MAX_RESPONSE_BYTES + 1))
    async with open_client(forge) as client:
        with pytest.raises(HostUnavailable, match="more than"):
            await client.get("/thing", Thing)


@asynchronous
async def test_an_unreachable_forge_is_an_error():
    forge = Forge()
    forge.url = NO_SERVER
    async with open_client(forge) as client:
        with pytest.raises(HostUnavailable, match=r"does not answer: .+"):
            await client.get("/thing", Thing)


# Limits


@asynchronous
async def test_while_the_forge_asks_to_wait_nothing_is_sent(forge: Forge):
    forge.plan(429, {"retry-after": "30"})
    async with open_client(forge) as client:
        with pytest.raises(HostUnavailable):
            await client.get("/thing", Thing)
        for ask in (
            client.get("/thing", Thing),
            client.get("/thing", Thing, urgent=True),
            client.send("PUT", "/thing"),
        ):
            with pytest.raises(HostUnavailable, match="30 seconds"):
                await ask
    assert forge.requests == []


@asynchronous
async def test_the_last_part_of_the_budget_is_reserved_for_landings(forge: Forge):
    headers = {"x-ratelimit-limit": "5000", "x-ratelimit-remaining": "10", "x-ratelimit-reset": "9999999999"}
    forge.plan(200, headers, b'{"name": "one"}', times=ALWAYS)
    async with open_client(forge) as client:
        assert await client.get("/thing", Thing)
        with pytest.raises(HostUnavailable, match="reserved for landings"):
            await client.get("/thing", Thing)
        with pytest.raises(HostUnavailable, match="reserved for landings"):
            await client.get_all("/things", list[Thing])
        assert await client.get("/thing", Thing, urgent=True)
        assert (await client.send("PUT", "/thing")).is_success


# Error details and the cache


@pytest.mark.parametrize(
    ("body", "detail"),
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
def test_the_detail_of_an_error_is_its_message(body: bytes, detail: str):
    assert extract_error_detail(body) == detail


SIZE_OF_TWO = 2 * (ENTRY_OVERHEAD_BYTES + len("/a") + len(b"1234"))


def a_response(body: bytes = b"1234", tag: str = '"a"') -> CachedResponse:
    return CachedResponse(tag, "", body)


def test_a_cached_response_is_found_and_nothing_else():
    cache = ResponseCache()
    cache.put("/a", a_response())
    assert cache.get("/a") == a_response()
    assert cache.get("/b") is None


def test_a_newer_response_replaces_the_older():
    cache = ResponseCache(max_bytes=SIZE_OF_TWO)
    for tag in ("1", "2", "3"):
        cache.put("/a", a_response(tag=tag))
    cache.put("/b", a_response())
    assert cache.get("/a") == a_response(tag="3")
    assert cache.get("/b")


def test_the_least_recently_used_response_is_evicted_first():
    cache = ResponseCache(max_bytes=SIZE_OF_TWO)
    cache.put("/a", a_response())
    cache.put("/b", a_response())
    assert cache.get("/a")
    cache.put("/c", a_response())
    assert [cache.get(address) is not None for address in ("/a", "/b", "/c")] == [True, False, True]


def test_a_response_larger_than_the_cache_is_not_cached():
    cache = ResponseCache(max_bytes=SIZE_OF_TWO)
    cache.put("/a", a_response())
    cache.put("/b", a_response(b"x" * SIZE_OF_TWO))
    assert cache.get("/b") is None
    cache.put("/c", a_response())
    assert cache.get("/c")
