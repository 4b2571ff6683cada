"""Input from outside stays data wherever it appears again: in headers, metrics, logs and responses."""

import gzip
import re
import zlib
from io import StringIO

import httpx2
import pytest
import structlog
from prometheus_client.parser import text_string_to_metric_families

from mergeyard.logging import configure_logging
from tests.hostile.conftest import Target
from tests.support.api_client import QUEUE

TOKENS = [b"\xff", b"my_\xc3\xa9", b"my_" + b"\xe9" * 49, b"\x80" * 5000, b"my_" + b"0" * 49, b"\xf0\x9f\x90\x91"]
BRANCHES = [
    'a"b',
    'quote"}\u2028mq_depth_current{x="',
    "a,b=c{d}",
    "<b>bold</b>",
    "reversed\u202egnp",
    "x\u0085y",
    "%0a%0d",
]


@pytest.mark.parametrize("token", TOKENS, ids=lambda token: token[:12].hex())
def test_token_of_any_bytes_is_invalid(target: Target, token: bytes):
    head = b"POST /v1/getQueue HTTP/1.1\r\nhost: mergeyard\r\ncontent-length: 0\r\nx-api-token: %b\r\n\r\n" % token
    with target.connect() as connection:
        response = connection.send(head).receive()
    assert response.status_and_code == (401, "invalid_token")
    assert "www-authenticate" in response.headers


@pytest.mark.parametrize("name", ["gzip", "deflate", "br", "zstd", "identity", "", "GZIP, gzip"])
def test_compressed_body_is_refused(target: Target, name: str):
    bomb = gzip.compress(b" " * 1_000_000) if "zip" in name.lower() else zlib.compress(b" " * 1_000_000)
    response = target.post("getQueue", bomb, content_encoding=name)
    assert (response.status_code, response.json()["code"]) == (415, "unsupported_media_type")


@pytest.mark.parametrize("given", ["a\tb", "\xff", "x" * 129, "", "\x7f"])
def test_request_id_cannot_split_a_header(target: Target, given: str):
    head = f"GET /healthz HTTP/1.1\r\nhost: mergeyard\r\nx-request-id: {given}\r\n\r\n".encode("latin-1")
    with target.connect() as connection:
        response = connection.send(head).receive()
    assert response.status == 400 or response.headers["x-request-id"].isalnum()


def test_redirect_to_a_check_output_stays_on_this_server(target: Target):
    run = f"/runs/{'0' * 36}"
    for name in ("//evil.example", "%0dset-cookie:%20x=y%0d//evil.example"):
        response = httpx2.get(f"{target.url}{run}/checks/{name}", headers={"accept": "text/html"})
        assert response.status_code == 303
        assert re.fullmatch(rf"{run}/output/[\w%.-]+", response.headers["location"])
        assert "set-cookie" not in response.headers
    broken = httpx2.get(f"{target.url}{run}/checks/%0d%0aset-cookie:%20x=y", headers={"accept": "text/html"})
    assert broken.status_code == 404
    assert "set-cookie" not in broken.headers


def test_metrics_are_parsed_correctly_for_any_branch_name(target: Target):
    origin = target.environment.origin
    for branch in BRANCHES:
        origin.branch(branch, base="main")
        assert target.post("createQueue", QUEUE | {"targetBranch": branch}).status_code == 200
    text = target.client.get("/v1/getMergeQueueMetrics").text
    families = {family.name: family for family in text_string_to_metric_families(text)}
    depths = [sample.labels["branch"] for sample in families["mq_depth_current"].samples]
    assert {branch: depths.count(branch) for branch in BRANCHES} == dict.fromkeys(BRANCHES, 2)
    for branch in BRANCHES:
        assert target.post("deleteQueue", QUEUE | {"targetBranch": branch}).status_code == 200


@pytest.mark.usefixtures("logging_as_before")
def test_logged_exception_cannot_color_a_terminal_or_forge_a_line():
    """An exception can quote input, and is written on lines of its own."""
    stream = StringIO()
    configure_logging("human", "info", stream)
    forged = "2026-11-15 [info] all is well"
    try:
        raise ValueError(f"\x1b[2Jno such name: \r\n{forged}\n\u202egnp\x9b31m")
    except ValueError as error:
        structlog.get_logger("hostile").error("failed", exc_info=error, name=f"\u2028{forged}")
    written = stream.getvalue()
    assert not {"\x1b", "\r", "\u202e", "\x9b", "\u2028"} & set(written)
    assert not any(line.startswith(forged) for line in written.splitlines())
