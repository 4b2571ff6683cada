"""Requests to a forge: addresses and credentials, pages, caching, errors and rate limits."""

import asyncio
import json
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec import Struct

from mergeyard.adapters.forges import http
from mergeyard.adapters.forges.http import (
    ENTRY_OVERHEAD_BYTES,
    MISSING_STATUSES,
    CachedResponse,
    ForgeClient,
    ResponseCache,
)
from mergeyard.adapters.forges.rate_limits import RateLimits, WritePace, extract_error_detail
from mergeyard.domain.ids import Repo
from mergeyard.domain.timestamps import MINUTE, SECOND, later
from mergeyard.ports.forge import HostAccessLost, HostError, HostRefused, HostUnavailable, RateLimited
from tests.support.asynchronous import asynchronous
from tests.support.clock import ManualClock
from tests.support.forges.faults import ALWAYS, Fault, Faults, Hangs, LosesResponse, RespondsWith
from tests.support.http_server import App, Receive, Scope, Send, read_body, read_headers, respond, serve_in_thread
from tests.support.log_capture import capture_warnings

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
async def open_client(
    forge: Forge, path: str = "/api", clock: ManualClock | None = None, pace: WritePace | None = None
) -> AsyncGenerator[ForgeClient]:
    async def credentials() -> Mapping[str, str]:
        return {"authorization": "Bearer secret"}

    client = ForgeClient(forge.url + path, credentials, RateLimits("a forge", clock or ManualClock(), pace))
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


@asynchronous
async def test_a_missing_object_is_none(forge: Forge):
    async with open_client(forge) as client:
        assert await client.get("/thing", Thing) is None
        assert await client.get("/thing", Thing, urgent=True) is None
        assert await client.get_all("/thing", list[Thing]) == []


@asynchronous
async def test_an_ended_version_of_the_api_is_an_error_and_no_missing_object(forge: Forge):
    forge.serve("/api/thing", {"message": "This version is no longer supported"}, 410)
    async with open_client(forge) as client:
        for ask in (client.get("/thing", Thing), client.get_all("/thing", list[Thing])):
            with pytest.raises(HostUnavailable, match=r"410: This version .* update Mergeyard") as raised:
                await ask
            assert not isinstance(raised.value, HostRefused)
        assert await client.get("/thing", Thing, missing=MISSING_STATUSES) is None
        assert await client.get_all("/thing", list[Thing], missing=MISSING_STATUSES) == []


@asynchronous
async def test_the_announced_end_of_the_api_is_logged_once_per_host(forge: Forge):
    forge.serve("/api/thing", {"name": "one"}, deprecation="Fri, 10 Mar 2028 00:00:00 GMT", sunset="x" * 1000)
    with capture_warnings() as entries:
        async with open_client(forge) as client:
            for each in (client, client, client.for_repository(REPO, "/other"), client.with_own_limits()):
                await each.without_repository().get("/thing", Thing)
    (entry,) = entries
    assert (entry["event"], entry["host"]) == ("api_version_ends", "a forge")
    assert (entry["deprecation"], entry["sunset"]) == ("Fri, 10 Mar 2028 00:00:00 GMT", "x" * 200)


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


@asynchronous
async def test_the_number_of_the_next_page_is_used_instead_of_the_link(forge: Forge):
    """GitLab has other host names in its links if it is reached through another address."""
    elsewhere = '<http://git.example.com:443/api/things?page=2>; rel="next"'
    first = [{"name": "one"}]
    forge.serve("/api/things?sort=desc&per_page=2", first, x_next_page="2", link=elsewhere, etag='"1"')
    forge.serve("/api/things?sort=desc&per_page=2&page=2", [], x_next_page="3", link=elsewhere, etag='"2"')
    forge.serve("/api/things?sort=desc&per_page=2&page=3", [{"name": "two"}], x_next_page="", link=elsewhere)
    async with open_client(forge) as client:
        for _ in range(2):
            found = await client.get_all("/things", list[Thing], {"sort": "desc", "per_page": 2})
            assert found == [Thing("one"), Thing("two")]


@asynchronous
async def test_no_further_page_is_read_than_the_caller_wants(forge: Forge):
    forge.serve("/api/things", {"things": [{"name": "one"}]}, x_next_page="2")
    async with open_client(forge) as client:
        async for page in client.iterate_pages("/things", dict[str, list[Thing]]):
            assert page == {"things": [Thing("one")]}
            break
    assert len(forge.requests) == 1


# Repositories


REPO = Repo("a forge", "acme", "app")


RENAMED = "a forge/acme/app is now a forge/acme/new: create the queue for the new name, or rename it back"


@pytest.mark.parametrize("status", [301, 302, 307, 308])
@pytest.mark.parametrize("member", ["full_name", "path_with_namespace"])
@asynchronous
async def test_the_new_name_of_a_renamed_repository_is_reported(forge: Forge, status: int, member: str):
    forge.serve("/api/repos/app", {}, status, location=f"{forge.url}/api/repositories/7")
    for path in ("pulls/1", "things", "comments"):
        forge.serve(f"/api/repos/app/{path}", {}, status, location=f"{forge.url}/api/repositories/7/{path}")
    forge.serve("/api/repositories/7", {member: "acme/new"})
    async with open_client(forge) as client:
        app = client.for_repository(REPO, "/repos/app")
        for ask in (
            app.read_repository(Thing),
            app.get("/pulls/1", Thing),
            app.get_all("/things", list[Thing]),
            app.send("POST", "/comments"),
        ):
            with pytest.raises(HostAccessLost, match=RENAMED) as raised:
                await ask
            assert not isinstance(raised.value, HostRefused)


@asynchronous
async def test_a_location_without_a_host_leads_to_the_new_name(forge: Forge):
    """Gitea redirects so."""
    forge.serve("/api/repos/app", {}, 307, location="/api/repos/new")
    forge.serve("/api/repos/new", {"full_name": "acme/new"})
    async with open_client(forge) as client:
        with pytest.raises(HostAccessLost, match=RENAMED):
            await client.for_repository(REPO, "/repos/app").read_repository(Thing)


@asynchronous
async def test_a_write_below_the_former_name_of_a_project_names_the_new_one(forge: Forge):
    """GitLab answers 405 to these, and redirects only reads."""
    moved = {"message": "405 Method Not Allowed - Non GET methods are not allowed for moved projects"}
    forge.serve("/api/projects/app", {}, 301, location=f"{forge.url}/api/projects/7")
    forge.serve("/api/projects/app/notes", moved, 405)
    forge.serve("/api/projects/7", {"path_with_namespace": "acme/new"})
    async with open_client(forge) as client:
        app = client.for_repository(REPO, "/projects/app")
        with pytest.raises(HostAccessLost, match=RENAMED):
            await app.send("POST", "/notes", {"body": "x"})
        forge.serve("/api/projects/app/notes", {"message": "405 Method Not Allowed"}, 405)
        assert (await app.send("POST", "/notes", {"body": "x"})).status == 405


@pytest.mark.parametrize(
    "location", ["{url}/elsewhere/7", "https://evil.example/api/7", "{url}/api/../x", "http://[", ""]
)
@asynchronous
async def test_a_repository_that_moved_elsewhere_gets_no_request_there(forge: Forge, location: str):
    forge.serve("/api/repos/app", {}, 301, **({"location": location.format(url=forge.url)} if location else {}))
    async with open_client(forge) as client:
        with pytest.raises(HostUnavailable, match=r"answered 301: it redirects to .* configure the URL"):
            await client.for_repository(REPO, "/repos/app").read_repository(Thing)
    assert len(forge.requests) == 1


@asynchronous
async def test_a_redirect_that_does_not_lead_to_a_new_name_is_reported_as_it_is(forge: Forge):
    forge.serve("/api/repos/app", {}, 301, location=f"{forge.url}/api/repositories/7")
    forge.serve("/api/repos/lib", {"full_name": "acme/lib"})
    forge.serve("/api/repos/lib/thing", {}, 302, location=f"{forge.url}/api/repos/lib")
    async with open_client(forge) as client:
        for ask in (
            client.for_repository(REPO, "/repos/app").read_repository(Thing),
            client.for_repository(REPO, "/repos/lib").get("/thing", Thing),
        ):
            with pytest.raises(HostUnavailable, match="it redirects to") as raised:
                await ask
            assert not isinstance(raised.value, HostRefused)


@asynchronous
async def test_only_one_redirect_is_followed_for_the_new_name(forge: Forge):
    forge.serve("/api/repos/app", {}, 301, location=f"{forge.url}/api/repositories/7")
    forge.serve("/api/repositories/7", {}, 301, location=f"{forge.url}/api/repositories/8")
    async with open_client(forge) as client:
        with pytest.raises(HostUnavailable, match="repositories/7 answered 301"):
            await client.for_repository(REPO, "/repos/app").read_repository(Thing)
    assert len(forge.requests) == 2


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
            with pytest.raises(HostAccessLost, match="a forge/acme/app is not visible to us: give") as error:
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
    assert (reply.status, reply.is_success, reply.detail) == (422, False, "no")


@asynchronous
async def test_a_post_without_a_body_sends_an_empty_object(forge: Forge):
    async with open_client(forge) as client:
        for method in ("POST", "DELETE"):
            await client.send(method, "/thing")
    assert [body for _, _, body in forge.requests] == [b"{}", b""]
    assert [headers.get("content-type") for _, headers, _ in forge.requests] == ["application/json", None]


@pytest.mark.parametrize(("base", "address"), [("", "/graphql"), ("/api/v3", "/api/graphql")])
@asynchronous
async def test_queries_are_sent_to_the_graphql_api_of_the_cloud_and_of_an_enterprise_server(
    forge: Forge, base: str, address: str
):
    forge.serve(address, {"data": {}})
    async with open_client(forge, base) as client:
        assert (await client.query("query { viewer { login } }", {})).is_success


@asynchronous
async def test_a_lost_reply_is_an_error_with_its_cause(forge: Forge):
    forge.faults.plan(LosesResponse())
    async with open_client(forge) as client:
        with pytest.raises(HostUnavailable, match=r"does not answer: .+"):
            await client.send("POST", "/thing", {})
    assert len(forge.requests) == 1


# Errors


KIND_OF_STATUS = {401: HostAccessLost, 403: HostRefused, 422: HostRefused, 429: RateLimited}


@pytest.mark.parametrize("status", [401, 403, 408, 422, 429, 500, 502, 503, 504])
@asynchronous
async def test_a_failed_read_is_an_error_with_the_message_of_the_forge(forge: Forge, status: int):
    forge.plan(status, body=b'{"message": "not\\nnow"}')
    async with open_client(forge) as client:
        with pytest.raises(HostError, match=f"/thing answered {status}: not now") as raised:
            await client.get("/thing", Thing)
    assert type(raised.value) is KIND_OF_STATUS.get(status, HostUnavailable)


@pytest.mark.parametrize("status", [403, 404, 405, 409, 422])
@asynchronous
async def test_a_permanent_refusal_is_a_host_refused_error(forge: Forge, status: int):
    forge.plan(status)
    async with open_client(forge) as client:
        assert isinstance((await client.send("PUT", "/thing")).to_error(), HostRefused)


@pytest.mark.parametrize("header", ["x-github-request-id", "x-request-id"])
@asynchronous
async def test_an_error_names_the_request_for_the_support_of_the_forge(forge: Forge, header: str):
    forge.plan(422, {header: "A1:B2"}, b'{"message": "no"}')
    async with open_client(forge) as client:
        error = (await client.send("PUT", "/thing")).to_error()
    assert str(error) == f"{forge.url}/api/thing answered 422: no (request A1:B2)"


LIMIT = b'{"message": "You have exceeded a secondary rate limit."}'
LOCKED_OUT = b'{"message": "Maximum number of login attempts exceeded. Please try again later."}'


@asynchronous
async def test_a_suspension_is_temporary_and_delays_nothing(forge: Forge):
    forge.plan(403, {}, b'{"message": "This installation has been suspended"}', times=2)
    async with open_client(forge) as client:
        for _ in range(2):
            with pytest.raises(HostAccessLost, match="403: This installation") as raised:
                await client.send("PUT", "/thing")
            assert not isinstance(raised.value, HostRefused)


RATE_LIMITED: dict[str, tuple[int, dict[str, str], bytes]] = {
    "the budget is used up": (403, {"x-ratelimit-remaining": "0"}, b"{}"),
    "retry after": (403, {"retry-after": "60"}, b"{}"),
    "only a message": (403, {}, LIMIT),
    "too many wrong credentials": (403, {}, LOCKED_OUT),
    "with a budget": (429, {"x-ratelimit-remaining": "4000"}, b"{}"),
    "of all calls": (429, {}, LIMIT),
}


@pytest.mark.parametrize(("status", "headers", "body"), RATE_LIMITED.values(), ids=RATE_LIMITED.keys())
@asynchronous
async def test_a_rate_limited_request_is_temporary_and_delays_all_others(
    forge: Forge, status: int, headers: Mapping[str, str], body: bytes
):
    forge.plan(status, headers, body)
    async with open_client(forge) as client:
        with pytest.raises(HostUnavailable, match=str(status)) as raised:
            await client.send("PUT", "/thing")
        assert not isinstance(raised.value, HostRefused)
        for ask in (client.send("PUT", "/thing", urgent=True), client.get("/other", Thing, urgent=True)):
            with pytest.raises(HostUnavailable, match="60 seconds"):
                await ask


TOO_FAST = b'{"message": "Validation Failed", "errors": [{"message": "was submitted too quickly"}]}'
BLOCKED = b'{"message": "You exceeded a secondary rate limit and are blocked from content creation."}'


@pytest.mark.parametrize(("status", "body"), [(422, TOO_FAST), (403, BLOCKED), (429, BLOCKED)])
@asynchronous
async def test_writes_that_came_too_fast_delay_writes_but_no_landings(forge: Forge, status: int, body: bytes):
    forge.serve("/api/thing", {"name": "one"})
    clock, headers = ManualClock(), {"x-ratelimit-remaining": "4000"}
    forge.plan(status, headers, body)
    async with open_client(forge, clock=clock) as client:
        with pytest.raises(HostUnavailable, match=str(status)) as raised:
            await client.send("POST", "/comments", {})
        assert not isinstance(raised.value, HostRefused)
        with pytest.raises(HostUnavailable, match="60 seconds"):
            await client.send("PUT", "/thing")
        assert await client.get("/thing", Thing)
        assert (await client.send("PUT", "/thing", urgent=True)).is_success
        clock.move_to(later(clock.now(), MINUTE))
        assert (await client.send("PUT", "/thing")).is_success


@pytest.mark.parametrize(("urgent", "headers"), [(True, {}), (False, {"retry-after": "60"})])
@asynchronous
async def test_a_limit_of_writes_that_concerns_landings_delays_no_reads(
    forge: Forge, urgent: bool, headers: Mapping[str, str]
):
    """It does if a landing exceeded it, or if the forge names a time."""
    forge.serve("/api/thing", {"name": "one"})
    clock = ManualClock()
    forge.plan(403, headers, BLOCKED)
    async with open_client(forge, clock=clock) as client:
        with pytest.raises(HostUnavailable, match="403"):
            await client.send("POST", "/comments", {}, urgent=urgent)
        for is_urgent in (False, True):
            with pytest.raises(HostUnavailable, match="60 seconds"):
                await client.send("PUT", "/thing", urgent=is_urgent)
            assert await client.get("/thing", Thing, urgent=is_urgent)
        clock.move_to(later(clock.now(), MINUTE))
        assert (await client.send("PUT", "/thing", urgent=True)).is_success


ENDPOINT_LIMITED: dict[str, tuple[dict[str, str], bytes]] = {
    "without a time": ({}, b"{}"),
    "with a time": ({"retry-after": "60"}, b'{"message": {"error": "This endpoint has been requested too often."}}'),
}


@pytest.mark.parametrize(("headers", "body"), ENDPOINT_LIMITED.values(), ids=ENDPOINT_LIMITED.keys())
@asynchronous
async def test_the_limit_of_one_endpoint_delays_only_that_endpoint(
    forge: Forge, headers: Mapping[str, str], body: bytes
):
    for path in ("app", "app/notes/1", "lib/pulls/2/notes", "app/pulls"):
        forge.serve(f"/api/repos/{path}", {"name": "one"})
    clock = ManualClock()
    forge.plan(429, headers, body)
    async with open_client(forge, clock=clock) as client:
        app, other = (client.for_repository(REPO, f"/repos/{name}") for name in ("app", "lib"))
        with pytest.raises(HostUnavailable, match="429"):
            await app.send("POST", "/pulls/1/notes", {})
        for ask in (app.send("POST", "/pulls/3/notes?x=1"), other.send("POST", "/pulls/2/notes", urgent=True)):
            with pytest.raises(HostUnavailable, match="60 seconds"):
                await ask
        assert await app.get("/notes/1", Thing)
        assert await other.get("/pulls/2/notes", Thing)
        assert (await app.send("POST", "/pulls")).is_success
        clock.move_to(later(clock.now(), MINUTE))
        assert (await other.send("POST", "/pulls/2/notes")).is_success


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


class StopsAnswering(Struct, frozen=True):
    """Sends a part of the response, then nothing until the client disconnects."""

    async def apply(self, app: App, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b" ", "more_body": True})
        await Hangs().apply(app, scope, receive, send)


@pytest.mark.parametrize("fault", [Hangs(), StopsAnswering()])
@asynchronous
async def test_a_request_and_its_whole_response_have_a_time_limit(
    forge: Forge, fault: Fault, monkeypatch: pytest.MonkeyPatch
):
    """Each call that hangs follows one that opened the connection, so that the time is not used up by connecting."""
    forge.serve("/api/thing", {"name": "one"})
    clock = ManualClock()
    async with asyncio.timeout(10), open_client(forge, clock=clock, pace=WritePace(0, 60, 400)) as client:
        for call in (lambda: client.send("PUT", "/thing"), lambda: client.get("/thing", Thing)):
            assert (await client.send("PUT", "/thing")).is_success
            forge.faults.plan(fault)
            with monkeypatch.context() as limited:
                limited.setattr(http, "TOTAL_TIMEOUT_S", 0.05)
                with pytest.raises(HostUnavailable, match="does not answer: TimeoutError") as raised:
                    await call()
            assert not isinstance(raised.value, HostRefused)
            clock.move_to(later(clock.now(), MINUTE))
        assert (await client.send("PUT", "/thing")).is_success


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
        with pytest.raises(HostUnavailable, match="kept for merges"):
            await client.get("/thing", Thing)
        with pytest.raises(HostUnavailable, match="kept for merges"):
            await client.get_all("/things", list[Thing])
        with pytest.raises(HostUnavailable, match="kept for merges"):
            await client.send("PUT", "/thing")
        assert await client.get("/thing", Thing, urgent=True)
        assert (await client.send("PUT", "/thing", urgent=True)).is_success
        assert (await client.send("GET", "/thing")).is_success
        assert await client.with_own_limits().get("/thing", Thing)


@asynchronous
async def test_writes_are_paced_and_reads_and_landings_are_not(forge: Forge):
    forge.serve("/api/thing", {"name": "one"})
    clock = ManualClock()
    async with asyncio.timeout(10), open_client(forge, clock=clock, pace=WritePace(SECOND, 60, 400)) as client:
        await client.send("PUT", "/thing")
        second = asyncio.create_task(client.send("PUT", "/thing"))
        await clock.next_sleep()
        assert clock.next_wakeup() == later(clock.now(), SECOND)
        assert await client.get("/thing", Thing)
        assert (await client.send("GET", "/thing")).is_success
        assert (await client.send("PUT", "/thing", urgent=True)).is_success
        clock.move_to(later(clock.now(), SECOND))
        assert (await second).is_success


@asynchronous
async def test_writes_that_wait_for_a_limited_one_are_not_sent_and_do_not_count(forge: Forge):
    forge.serve("/api/thing", {"name": "one"})
    forge.plan(403, {"retry-after": "60"}, BLOCKED)
    clock = ManualClock()
    async with asyncio.timeout(10), open_client(forge, clock=clock, pace=WritePace(0, 60, 2)) as client:
        writes = [client.send("PUT", "/thing", {}) for _ in range(5)]
        errors = await asyncio.gather(*writes, return_exceptions=True)
        assert ["wait for 60 seconds" in str(error) for error in errors] == [False, True, True, True, True]
        assert forge.requests == []
        clock.move_to(later(clock.now(), MINUTE))
        assert (await client.send("PUT", "/thing")).is_success
        with pytest.raises(HostUnavailable, match="limits how much we write"):
            await client.send("PUT", "/thing")


@asynchronous
async def test_a_write_without_credentials_is_not_sent_and_does_not_count(forge: Forge):
    forge.serve("/api/thing", {"name": "one"})

    async def fail() -> Mapping[str, str]:
        raise HostUnavailable("no token")

    async with open_client(forge, pace=WritePace(0, 60, 1)) as client:
        without_token = client.for_repository(REPO, "", fail)
        for urgent in (False, True):
            with pytest.raises(HostUnavailable, match="no token"):
                await without_token.send("PUT", "/thing", urgent=urgent)
        assert (await client.send("PUT", "/thing")).is_success


# Error details and the cache


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b'{"message": "Not\\n  Found"}', "Not Found"),
        (b'{"error": "x"}', "x"),
        (b'{"error": "invalid_token", "error_description": "The token has expired"}', "The token has expired"),
        (b'{"message": "Validation Failed", "errors": ["one", {"message": "two"}]}', "Validation Failed: one, two"),
        (b'{"message": "Validation Failed", "errors": "one"}', "Validation Failed: one"),
        (
            b'{"message": "no", "errors": [{"resource": "Issue", "field": "a", "code": "missing"}]}',
            "no: Issue a missing",
        ),
        (b'{"message": "no", "errors": []}', "no"),
        (b'{"message": {"base": ["Too many", "Too old"]}}', "Too many, Too old"),
        (b'{"message": {"name": ["is taken"], "base": ["Sorry"]}}', "name: is taken, Sorry"),
        (b'{"message": {"error": "This endpoint has had enough"}}', "This endpoint has had enough"),
        (b'{"message": ["Another one exists: !5"]}', "Another one exists: !5"),
        (b'{"state": "x"}', "state: x"),
        (b"[[[[[[[1]]]]]]]", "\N{HORIZONTAL ELLIPSIS}"),
        (b'{"errors": [%s1]}' % (b"1," * 1000), ", ".join("1" * 10)),
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
    return CachedResponse(tag, {}, body)


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
