"""Many slow, large or idle connections at once neither delay other clients nor use up the server.

The attackers have no token, except where a test says so.
"""

from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import islice
from resource import RLIMIT_NOFILE, getrlimit, setrlimit

import pytest
from msgspec import json

from mergeyard.api.middleware import MAX_REQUESTS
from mergeyard.api.pages import MAX_WEBHOOK_BODIES, WEBHOOK_BODY_TIMEOUT_S
from mergeyard.api.request_body import MAX_BODY_BYTES
from mergeyard.web.sign_in import MAX_SIGN_IN_FORMS
from mergeyard.web.user_sessions import BODY_TIMEOUT_S
from tests.hostile.conftest import Target
from tests.hostile.process_stats import Probe, memory_mib, open_files, processor_seconds, slowness
from tests.hostile.raw_connection import RawConnection
from tests.support.api_client import QUEUE
from tests.support.long_tests import mark_long_after
from tests.support.polling import eventually

MIB = 1024 * 1024
SLOW_CLIENTS = 500
ATTACKERS = MAX_REQUESTS + 200
RESPONSES = 30


@pytest.fixture(autouse=True, scope="module")
def many_open_files() -> Generator[None]:
    """Each attacker needs a connection in the process of the test, too."""
    soft, hard = getrlimit(RLIMIT_NOFILE)
    setrlimit(RLIMIT_NOFILE, (max(soft, min(hard, 4096)), hard))
    yield
    setrlimit(RLIMIT_NOFILE, (soft, hard))


@contextmanager
def connections(target: Target, requests: Iterator[bytes], count: int) -> Generator[list[RawConnection]]:
    """Connections that send this and then nothing, until the test ends them."""
    with ExitStack() as stack:
        opened = [stack.enter_context(target.connect()) for _ in range(count)]
        for connection, request in zip(opened, requests, strict=False):
            connection.send(request)
        yield opened


def repeat(request: bytes) -> Iterator[bytes]:
    while True:
        yield request


def assert_responsive(target: Target) -> None:
    """Probes and a request with a token are served, and without delay."""
    for ask in (
        lambda: target.client.get("/healthz"),
        lambda: target.client.get("/readyz"),
        lambda: target.post("getQueue", QUEUE),
        lambda: target.client.get("/sign-in"),
    ):
        with Probe(ask) as probe:
            eventually(lambda probe=probe: len(probe.seconds) >= RESPONSES)
        assert probe.percentile_90 < 1


# Slow clients


def slow_clients(target: Target) -> Iterator[bytes]:
    """What each client sends before it stops: a part of the head, a part of the body, or requests whose responses it
    never reads."""
    large = b"GET /docs/docs.js HTTP/1.1\r\nhost: mergeyard\r\n\r\n" * 50
    while True:
        yield target.head()[:-2] + b"x-slow: a"
        yield target.head("getQueue", "content-length: 300000") + b'{"a":"'
        yield b"GET /healthz HTTP/1.1\r\nhost: mergeyard\r\ncontent-length: 99999\r\n\r\n"
        yield large
        yield b""


@pytest.mark.long
def test_500_slow_clients_of_every_kind_do_not_delay_others(target: Target):
    """Also with a token."""
    with connections(target, slow_clients(target), SLOW_CLIENTS):
        assert_responsive(target)
    assert memory_mib(target.pid) < 400


# More attackers than requests that can be in progress


def a_slow_body(path: str, size: int = 1000, sent: int = 1) -> bytes:
    media_type = "application/x-www-form-urlencoded"
    head = f"POST {path} HTTP/1.1\r\nhost: mergeyard\r\ncontent-type: {media_type}\r\ncontent-length: {size}\r\n\r\n"
    return head.encode() + b"a" * sent


@pytest.mark.long
def test_unread_bodies_do_not_exhaust_the_server(target: Target):
    before = open_files(target.pid)
    with connections(target, repeat(a_slow_body("/v1/getQueue", 1_000_000)), ATTACKERS) as attackers:
        assert_responsive(target)
        assert {attacker.receive().status_and_code for attacker in attackers} == {(401, "missing_token")}
        eventually(lambda: open_files(target.pid) < before + 50, describe=lambda: open_files(target.pid))


BODIES_WITHOUT_A_TOKEN = {"/hooks/github/github.com": MAX_WEBHOOK_BODIES, "/sign-in": MAX_SIGN_IN_FORMS}


@pytest.mark.long
@pytest.mark.parametrize("path", mark_long_after(1, list(BODIES_WITHOUT_A_TOKEN)))
def test_slow_bodies_that_no_token_precedes_do_not_exhaust_the_server(target: Target, path: str):
    """A part of them is awaited, others are refused, and all connections of others are closed."""
    assert BODIES_WITHOUT_A_TOKEN[path] == 100
    before = open_files(target.pid)
    with connections(target, repeat(a_slow_body(path)), ATTACKERS) as attackers:
        assert_responsive(target)
        refused = attackers[BODIES_WITHOUT_A_TOKEN[path] :]
        assert {attacker.receive().status for attacker in refused} == {429}
        eventually(lambda: open_files(target.pid) < before + 200, describe=lambda: open_files(target.pid))


@pytest.mark.long
@pytest.mark.parametrize("path", BODIES_WITHOUT_A_TOKEN)
def test_slow_bodies_that_no_token_precedes_time_out_soon(target: Target, path: str):
    assert WEBHOOK_BODY_TIMEOUT_S == BODY_TIMEOUT_S == 10
    with connections(target, repeat(a_slow_body(path)), 100) as attackers:
        assert [attacker.receive().status for attacker in attackers] == [408] * 100
        with target.connect() as other:
            assert other.send(a_slow_body(path, 1)).receive().status == 401


@pytest.mark.long
def test_bodies_that_no_token_precedes_take_up_little_memory(target: Target):
    before = memory_mib(target.pid)
    request = a_slow_body("/hooks/github/github.com", MIB, 255 * 1024)
    with ExitStack() as stack:
        for _ in range(ATTACKERS):
            connection = stack.enter_context(target.connect())
            connection.socket.setblocking(False)
            connection.socket.send(request)
        assert_responsive(target)
        assert memory_mib(target.pid) < before + 150


@pytest.mark.long
def test_all_attacks_at_once_do_not_exhaust_the_server(target: Target):
    def requests() -> Iterator[bytes]:
        while True:
            yield a_slow_body("/v1/getQueue", 1_000_000)
            yield a_slow_body("/hooks/gitlab/nowhere")
            yield a_slow_body("/sign-in")
            yield from islice(slow_clients(target), 5)

    with connections(target, requests(), ATTACKERS):
        assert_responsive(target)


# Large bodies of a client with a token


def targets_upload(size: int) -> bytes:
    names = [f"{number:07}" for number in range(size // 10 - 100)]
    body = json.encode(QUEUE | {"pr": {"number": 404}, "impactedTargets": names})
    assert size - 2000 < len(body) <= size
    return body


@pytest.mark.long
def test_upload_of_18_mb_does_not_stop_other_requests(target: Target):
    body = targets_upload(18_000_000)
    with Probe(lambda: target.post("getQueue", QUEUE)) as other, ThreadPoolExecutor(1) as uploading:
        for _ in range(3):
            assert uploading.submit(target.post, "setImpactedTargets", body).result().json()["code"] == "pr_not_found"
    assert len(other.seconds) > 3
    assert other.percentile_90 < 1


@pytest.mark.long
def test_eight_large_uploads_at_once_do_not_delay_others(target: Target):
    body = targets_upload(MAX_BODY_BYTES)
    before = memory_mib(target.pid)
    with Probe(lambda: target.post("getQueue", QUEUE)) as other, ThreadPoolExecutor(8) as uploading:
        uploads = [uploading.submit(target.post, "setImpactedTargets", body) for _ in range(8)]
        assert {upload.result().json()["code"] for upload in uploads} == {"pr_not_found"}
    assert other.percentile_90 < 1
    assert memory_mib(target.pid, "VmHWM") < 1000
    eventually(lambda: memory_mib(target.pid) < before + 300, 30, lambda: memory_mib(target.pid))


OBJECTS = b'{"' + b'":1,"'.join(b"%05d" % at for at in range(99_999)) + b'":1}'
BOMBS: dict[str, Callable[[], bytes]] = {
    "strings": lambda: b'"more":["ab"' + b',"ab"' * (4 * MIB - 200) + b"]",
    "floats": lambda: b'"more":[1.5' + b",1.5" * (5 * MIB - 200) + b"]",
    "objects": lambda: b'"more":[' + b",".join([OBJECTS] * 18) + b"]",
    "digits": lambda: b'"more":0.' + b"1" * 20_000_000,
    "an exponent": lambda: b'"more":1e' + b"1" * 20_000_000,
    "a key": lambda: b'"more":{"' + b"a" * 20_000_000 + b'":1}',
    "lists": lambda: b'"more":[[]' + b",[]" * (6 * MIB) + b"]",
    "members": lambda: b",".join(b'"%x":1' % at for at in range(1_900_000)),
}


@pytest.mark.long
@pytest.mark.parametrize("name", BOMBS)
def test_body_that_grows_when_parsed_costs_little(target: Target, name: str):
    body = json.encode(QUEUE)[:-1] + b"," + BOMBS[name]() + b"}"
    assert 0.8 * MAX_BODY_BYTES < len(body) <= MAX_BODY_BYTES
    before = processor_seconds(target.pid)
    assert target.post("getQueue", body).status_code == 200
    assert processor_seconds(target.pid) - before < 3 * slowness()
    assert memory_mib(target.pid, "VmHWM") < 700
