"""What somebody sends is data wherever it comes out again: in headers, metrics, logs and answers."""

import gzip
import zlib
from io import StringIO

import httpx
import pytest
import structlog
from prometheus_client.parser import text_string_to_metric_families

from mergeyard.logs import configure
from tests.hostile.conftest import Target
from tests.support.api import QUEUE

TOKENS = [b"\xff", b"my_\xc3\xa9", b"my_" + b"\xe9" * 49, b"\x80" * 5000, b"my_" + b"0" * 49, b"\xf0\x9f\x90\x91"]
BRANCHES = [
    'a"b',
    'quote"}\u2028mq_depth_current{x="',
    "a,b=c{d}",
    "<b>bold</b>",
    "turned\u202egnp",
    "x\u0085y",
    "%0a%0d",
]


@pytest.mark.parametrize("token", TOKENS, ids=lambda token: token[:12].hex())
def test_a_token_of_any_bytes_is_unknown(target: Target, token: bytes):
    above = b"POST /v1/getQueue HTTP/1.1\r\nhost: yard\r\ncontent-length: 0\r\nx-api-token: %b\r\n\r\n" % token
    with target.wire() as wire:
        heard = wire.say(above).hear()
    assert heard.verdict == (401, "invalid_token")
    assert "www-authenticate" in heard.headers


@pytest.mark.parametrize("name", ["gzip", "deflate", "br", "zstd", "identity", "", "GZIP, gzip"])
def test_a_packed_body_is_never_unpacked(target: Target, name: str):
    bomb = gzip.compress(b" " * 1_000_000) if "zip" in name.lower() else zlib.compress(b" " * 1_000_000)
    told = target.ask("getQueue", bomb, content_encoding=name)
    assert (told.status_code, told.json()["code"]) == (415, "unsupported_media_type")


@pytest.mark.parametrize("given", ["a\tb", "\xff", "x" * 129, "", "\x7f"])
def test_no_header_comes_back_that_could_be_two(target: Target, given: str):
    above = f"GET /healthz HTTP/1.1\r\nhost: yard\r\nx-request-id: {given}\r\n\r\n".encode("latin-1")
    with target.wire() as wire:
        heard = wire.say(above).hear()
    assert heard.status == 400 or heard.headers["x-request-id"].isalnum()


def test_the_address_of_an_output_leads_nowhere_else(target: Target):
    there = f"/runs/{'0' * 36}/checks/%0d%0aset-cookie:%20x=y%0d%0a%0d%0a//evil.example"
    told = httpx.get(target.url + there, headers={"accept": "text/html"})
    assert told.status_code == 303
    assert told.headers["location"].startswith(f"/runs/{'0' * 36}/output/%0D%0A")
    assert "set-cookie" not in told.headers


def test_metrics_are_read_as_they_were_meant_whatever_a_branch_is_called(target: Target):
    origin = target.premises.origin
    for branch in BRANCHES:
        origin.branch(branch, upon="main")
        assert target.ask("createQueue", QUEUE | {"targetBranch": branch}).status_code == 200
    text = target.client.get("/v1/getMergeQueueMetrics").text
    families = {family.name: family for family in text_string_to_metric_families(text)}
    depths = [sample.labels["branch"] for sample in families["mq_depth_current"].samples]
    assert {branch: depths.count(branch) for branch in BRANCHES} == dict.fromkeys(BRANCHES, 2)
    for branch in BRANCHES:
        assert target.ask("deleteQueue", QUEUE | {"targetBranch": branch}).status_code == 200


@pytest.mark.usefixtures("logging_as_before")
def test_what_was_raised_can_neither_colour_a_terminal_nor_forge_a_line():
    """An exception may quote what somebody wrote, and is written in lines of its own."""
    stream = StringIO()
    configure("human", "info", stream)
    forged = "2026-11-15 [info] all is well"
    try:
        raise ValueError(f"\x1b[2Jno such name: \r\n{forged}\n\u202egnp\x9b31m")
    except ValueError as error:
        structlog.get_logger("hostile").error("failed", exc_info=error, name=f"\u2028{forged}")
    written = stream.getvalue()
    assert not {"\x1b", "\r", "\u202e", "\x9b", "\u2028"} & set(written)
    assert not any(line.startswith(forged) for line in written.splitlines())
