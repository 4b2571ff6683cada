"""Many at once: slow ones, large ones and empty ones, while everybody else is served as ever."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import islice

import pytest
from msgspec import json

from mergeyard.api.receiving import LIMIT
from tests.hostile.conftest import FEW_FILES, Target
from tests.hostile.process import Neighbour, memory, open_files, slowness, work
from tests.support.api import QUEUE
from tests.support.patience import eventually

MIB = 1024 * 1024
CROWD = 500
ANSWERS = 100


def slow_clients(target: Target) -> Iterator[bytes]:
    """What each has said when it stops: in the middle of its head, of its body, or with answers that it never reads."""
    large = b"GET /docs/docs.js HTTP/1.1\r\nhost: yard\r\n\r\n" * 50
    while True:
        yield target.head()[:-2] + b"x-slow: a"
        yield target.head("getQueue", "content-length: 300000") + b'{"a":"'
        yield b"GET /healthz HTTP/1.1\r\nhost: yard\r\ncontent-length: 99999\r\n\r\n"
        yield large
        yield b""


def neighbour(target: Target) -> Neighbour:
    return Neighbour(lambda: target.ask("getQueue", QUEUE))


def test_500_slow_clients_hold_nobody_up(target: Target):
    with ExitStack() as crowd:
        for said in islice(slow_clients(target), CROWD):
            crowd.enter_context(target.wire()).say(said)
        with neighbour(target) as other:
            eventually(lambda: len(other.seconds) >= ANSWERS)
        assert other.usually < 1
    assert memory(target.pid) < 400


def test_more_connections_than_there_is_room_for_end_nothing(narrow: Target):
    """Those that say nothing make way, and files are left for the work itself."""
    with ExitStack() as crowd:
        for _ in range(FEW_FILES * 2):
            crowd.enter_context(narrow.wire())
        assert narrow.ask("getQueue", QUEUE).status_code == 200
        assert open_files(narrow.pid) < FEW_FILES
        number = narrow.premises.open_pr({"a": "1"})
        narrow.premises.submit(number)
        narrow.premises.wait_for("merged", number)


@pytest.mark.long
def test_slow_clients_are_gone_in_the_end(target: Target):
    before = open_files(target.pid)
    with ExitStack() as crowd:
        for said in islice(slow_clients(target), CROWD):
            crowd.enter_context(target.wire()).say(said)
        eventually(lambda: open_files(target.pid) > before + CROWD // 2)
        eventually(lambda: open_files(target.pid) <= before + 5, 120, lambda: open_files(target.pid))


@pytest.mark.long
def test_eight_large_uploads_at_once_hold_nobody_up(target: Target):
    names = [f"{number:07}" for number in range(LIMIT // 10 - 100)]
    body = json.encode(QUEUE | {"pr": {"number": 404}, "impactedTargets": names})
    assert LIMIT - 2000 < len(body) <= LIMIT
    before = memory(target.pid)
    with neighbour(target) as other, ThreadPoolExecutor(8) as uploading:
        told = [uploading.submit(target.ask, "setImpactedTargets", body) for _ in range(8)]
        assert {upload.result().json()["code"] for upload in told} == {"pr_not_found"}
    assert other.usually < 1
    assert memory(target.pid, "VmHWM") < 1000
    eventually(lambda: memory(target.pid) < before + 300, 30, lambda: memory(target.pid))


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
def test_a_body_that_grows_when_it_is_read_costs_seconds_and_some_memory_at_most(target: Target, name: str):
    body = json.encode(QUEUE)[:-1] + b',"more":' + BOMBS[name] + b"}"
    assert len(body) <= LIMIT
    before = work(target.pid)
    assert target.ask("getQueue", body).status_code == 200
    assert work(target.pid) - before < 5 * slowness()
    assert memory(target.pid, "VmHWM") < 1000
