"""Many slow, large or idle connections at once do not delay other clients."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import islice

import pytest
from msgspec import json

from mergeyard.api.request_body import MAX_BODY_BYTES
from tests.hostile.conftest import FEW_FILES, Target
from tests.hostile.process_stats import Probe, memory_mib, open_files, processor_seconds, slowness
from tests.support.api_client import QUEUE
from tests.support.polling import eventually

MIB = 1024 * 1024
SLOW_CLIENTS = 500
RESPONSES = 100


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


def probe(target: Target) -> Probe:
    return Probe(lambda: target.post("getQueue", QUEUE))


def test_500_slow_clients_do_not_delay_others(target: Target):
    with ExitStack() as clients:
        for data in islice(slow_clients(target), SLOW_CLIENTS):
            clients.enter_context(target.connect()).send(data)
        with probe(target) as other:
            eventually(lambda: len(other.seconds) >= RESPONSES)
        assert other.percentile_90 < 1
    assert memory_mib(target.pid) < 400


def test_more_connections_than_open_files_do_not_stop_the_server(few_files_target: Target):
    """Idle connections are closed, and file descriptors are left for the work itself."""
    with ExitStack() as clients:
        for _ in range(FEW_FILES * 2):
            clients.enter_context(few_files_target.connect())
        assert few_files_target.post("getQueue", QUEUE).status_code == 200
        assert open_files(few_files_target.pid) < FEW_FILES
        number = few_files_target.environment.open_pr({"a": "1"})
        few_files_target.environment.submit(number)
        few_files_target.environment.wait_for("merged", number)


@pytest.mark.long
def test_slow_clients_are_disconnected_in_the_end(target: Target):
    before = open_files(target.pid)
    with ExitStack() as clients:
        for data in islice(slow_clients(target), SLOW_CLIENTS):
            clients.enter_context(target.connect()).send(data)
        eventually(lambda: open_files(target.pid) > before + SLOW_CLIENTS // 2)
        eventually(lambda: open_files(target.pid) <= before + 5, 120, lambda: open_files(target.pid))


@pytest.mark.long
def test_eight_large_uploads_at_once_do_not_delay_others(target: Target):
    names = [f"{number:07}" for number in range(MAX_BODY_BYTES // 10 - 100)]
    body = json.encode(QUEUE | {"pr": {"number": 404}, "impactedTargets": names})
    assert MAX_BODY_BYTES - 2000 < len(body) <= MAX_BODY_BYTES
    before = memory_mib(target.pid)
    with probe(target) as other, ThreadPoolExecutor(8) as uploading:
        uploads = [uploading.submit(target.post, "setImpactedTargets", body) for _ in range(8)]
        assert {upload.result().json()["code"] for upload in uploads} == {"pr_not_found"}
    assert other.percentile_90 < 1
    assert memory_mib(target.pid, "VmHWM") < 1000
    eventually(lambda: memory_mib(target.pid) < before + 300, 30, lambda: memory_mib(target.pid))


BOMBS = {
    "strings": b'["ab"' + b',"ab"' * (4 * MIB - 200) + b"]",
    "floats": b"[1.5" + b",1.5" * (5 * MIB - 200) + b"]",
    "objects": b"[" + b",".join([b'{"' + b'":1,"'.join(b"%05d" % at for at in range(99_999)) + b'":1}'] * 18) + b"]",
    "digits": b"0." + b"1" * 20_000_000,
    "an exponent": b"1e" + b"1" * 20_000_000,
    "pairs": b'["\\ud83d\\ude00"' + b',"\\ud83d\\ude00"' * MIB + b"]",
    "a key": b'{"' + b"a" * 20_000_000 + b'":1}',
    "empty lists": b"[[]" + b",[]" * 9000 + b',"' + b"a" * 20_000_000 + b'"]',
}


@pytest.mark.long
@pytest.mark.parametrize("name", BOMBS)
def test_body_that_grows_when_parsed_has_limited_cost(target: Target, name: str):
    body = json.encode(QUEUE)[:-1] + b',"more":' + BOMBS[name] + b"}"
    assert len(body) <= MAX_BODY_BYTES
    before = processor_seconds(target.pid)
    assert target.post("getQueue", body).status_code == 200
    assert processor_seconds(target.pid) - before < 5 * slowness()
    assert memory_mib(target.pid, "VmHWM") < 1000
