"""Where a request ends is never in doubt: what could be read in two ways is refused, and the connection with it."""

import pytest

from tests.hostile.conftest import Target
from tests.support.api import QUEUE

HEALTHY = b"GET /healthz HTTP/1.1\r\nhost: yard\r\n\r\n"
GOODBYE = b"GET /healthz HTTP/1.1\r\nhost: yard\r\nconnection: close\r\n\r\n"
POST = b"POST /v1/getQueue HTTP/1.1\r\nhost: yard\r\n"
CHUNKED = b"transfer-encoding: chunked\r\n"

AMBIGUOUS = {
    "length and chunks": POST + b"content-length: 5\r\n" + CHUNKED + b"\r\n0\r\n\r\n",
    "chunks and length": POST + CHUNKED + b"content-length: 5\r\n\r\n0\r\n\r\n",
    "two lengths": POST + b"content-length: 5\r\ncontent-length: 6\r\n\r\nabcdef",
    "the same length twice": POST + b"content-length: 5\r\ncontent-length: 5\r\n\r\nabcde",
    "a list of lengths": POST + b"content-length: 5, 5\r\n\r\nabcde",
    "a length with a sign": POST + b"content-length: +5\r\n\r\nabcde",
    "a negative length": POST + b"content-length: -5\r\n\r\nabcde",
    "a length in hex": POST + b"content-length: 0x5\r\n\r\nabcde",
    "a length beyond all numbers": POST + b"content-length: 18446744073709551617\r\n\r\na",
    "no length": POST + b"content-length: \r\n\r\n",
    "another encoding": POST + b"transfer-encoding: xchunked\r\n\r\n0\r\n\r\n",
    "identity": POST + b"transfer-encoding: identity\r\n\r\nabc",
    "chunks within nothing": POST + b"transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "compressed chunks": POST + b"transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "chunks twice": POST + CHUNKED + CHUNKED + b"\r\n0\r\n\r\n",
    "a blank before the colon": POST + b"transfer-encoding : chunked\r\n\r\n0\r\n\r\n",
    "a strange blank": POST + b"transfer-encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
    "chunks in HTTP/1.0": b"POST /v1/getQueue HTTP/1.0\r\n" + CHUNKED + b"\r\n0\r\n\r\n",
    "a folded header": POST + b"x-folded: a\r\n b\r\n\r\n",
    "a folded encoding": POST + b"transfer-encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    "lines that end in LF": b"GET /healthz HTTP/1.1\nhost: yard\n\n",
    "one line that ends in LF": b"GET /healthz HTTP/1.1\r\nhost: yard\nx: y\r\n\r\n",
    "a line that ends in CR": b"GET /healthz HTTP/1.1\r\nhost: yard\rx: y\r\n\r\n",
    "a blank before the first header": b"GET /healthz HTTP/1.1\r\n x: y\r\n\r\n",
    "a header without a name": b"GET /healthz HTTP/1.1\r\n: y\r\n\r\n",
    "a NUL in a header": b"GET /healthz HTTP/1.1\r\nx: a\0b\r\n\r\n",
    "a NUL in the address": b"GET /healthz\0 HTTP/1.1\r\n\r\n",
    "a control byte in the address": b"GET /health\x01z HTTP/1.1\r\n\r\n",
    "a byte beyond ASCII in the address": b"GET /\xff HTTP/1.1\r\n\r\n",
    "a byte beyond ASCII in the query": b"GET /sign-in?next=\xff HTTP/1.1\r\n\r\n",
    "a blank in the address": b"GET /a b HTTP/1.1\r\n\r\n",
    "HTTP/0.9": b"GET /healthz\r\n\r\n",
    "HTTP/0.9 by name": b"GET /healthz HTTP/0.9\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "HTTP/1.2": b"GET /healthz HTTP/1.2\r\n\r\n",
    "a tunnel": b"CONNECT evil.example:443 HTTP/1.1\r\nhost: yard\r\n\r\n",
    "an address that is only a name": b"GET evil.example:443 HTTP/1.1\r\nhost: yard\r\n\r\n",
    "an address without a path": b"GET http://evil.example HTTP/1.1\r\nhost: yard\r\n\r\n",
    "TLS": bytes.fromhex("16030100c8010000c40303") + b"\0" * 32,
}


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_what_can_be_read_in_two_ways_is_refused_and_nothing_after_it_is_read(target: Target, name: str):
    with target.wire() as wire:
        (heard,) = wire.say(AMBIGUOUS[name] + HEALTHY).hear_out()
    assert heard.verdict == (400, "invalid_request")
    assert heard.headers["connection"] == "close"
    assert heard.problem["requestId"] == heard.headers["x-request-id"]


SIZES = [b"+1", b"-1", b"0x1", b" 1", b"1 ", b"1\t", b"g", b"", b"\0", b"1;\0", b"FFFFFFFFFFFFFFFFF", b"1\n", b"1;a\nb"]


@pytest.mark.parametrize("size", SIZES, ids=repr)
def test_a_chunk_whose_size_is_none_is_refused(target: Target, size: bytes):
    with target.wire() as wire:
        (heard,) = wire.say(target.head("getQueue", "transfer-encoding: chunked") + size + b"\r\n{\r\n").hear_out()
    assert heard.verdict == (400, "invalid_request")


def test_a_chunk_that_is_longer_than_it_says_is_refused(target: Target):
    with target.wire() as wire:
        chunk = b"1\r\n{}\r\n0\r\n\r\n"
        (heard,) = wire.say(target.head("getQueue", "transfer-encoding: chunked") + chunk).hear_out()
    assert heard.verdict == (400, "invalid_request")


def test_chunks_with_extensions_and_trailers_are_read_as_what_they_hold(target: Target):
    body = target.request().partition(b"\r\n\r\n")[2]
    chunks = b"%04x;a=b;c\r\n%b\r\n0;last\r\nx-after: all\r\n\r\n" % (len(body), body)
    with target.wire() as wire:
        wire.say(target.head("getQueue", "transfer-encoding: chunked") + chunks + GOODBYE)
        assert [heard.status for heard in wire.hear_out()] == [200, 200]


def test_what_follows_the_body_opens_no_door(target: Target):
    """A proxy in front may look at the headers alone."""
    late = f"0\r\nx-api-token: {target.token}\r\ncontent-type: application/json\r\n\r\n".encode()
    with target.wire() as wire:
        heard, goodbye = wire.say(POST + CHUNKED + b"\r\n2\r\n{}\r\n" + late + GOODBYE).hear_out()
    assert heard.verdict == (401, "missing_token")
    assert goodbye.status == 200


@pytest.mark.parametrize("protocol", ["h2c", "websocket", "TLS/1.0"])
def test_who_wishes_for_another_protocol_is_answered_in_this_one(target: Target, protocol: str):
    """The body is the request's, and never the next request."""
    above = target.head("getQueue", "connection: upgrade", f"upgrade: {protocol}", f"content-length: {len(HEALTHY)}")
    with target.wire() as wire:
        wire.say(above)
        wire.say(HEALTHY)
        assert wire.hear().verdict == (400, "invalid_json")
        wire.say(target.request()[:-1], b"}" + GOODBYE)
        assert [heard.status for heard in wire.hear_out()] == [200, 200]


@pytest.mark.parametrize("path", ["/healthz", "/sign-in", "/nothing", "/v1/getQueue"])
@pytest.mark.parametrize("headers", [b"x: %b\r\n" % (b"a" * 65_600), b"x:\r\n" * 17_000], ids=["one", "many"])
def test_more_headers_than_64_kib_are_refused_everywhere(target: Target, path: str, headers: bytes):
    with target.wire() as wire:
        (heard,) = wire.say(f"GET {path} HTTP/1.1\r\nhost: yard\r\n".encode() + headers + b"\r\n").hear_out()
    assert heard.verdict == (431, "headers_too_large")


def test_thousands_of_headers_are_just_headers(target: Target):
    above = GOODBYE[:-2] + b"x:\r\n" * 9000 + b"\r\n"
    with target.wire() as wire:
        assert [heard.status for heard in wire.say(above).hear_out()] == [200]


# Several requests on one connection


def test_answers_come_in_the_order_of_the_questions(target: Target):
    questions = [target.request(), HEALTHY, target.request("getQueue", targetBranch="nowhere"), HEALTHY, GOODBYE]
    with target.wire() as wire:
        answers = wire.say(b"".join(questions)).hear_out()
    assert [heard.status for heard in answers] == [200, 200, 404, 200, 200]
    assert [b'"ok"' in heard.body for heard in answers] == [False, True, False, True, True]


def test_who_asked_well_is_answered_before_the_next_is_refused(target: Target):
    with target.wire() as wire:
        answers = wire.say(target.request() + target.request() + b"nonsense\r\n\r\n" + HEALTHY).hear_out()
    assert [heard.status for heard in answers] == [200, 200, 400]


def test_a_broken_body_behind_a_good_request_is_refused_in_its_turn(target: Target):
    broken = target.head("getQueue", "transfer-encoding: chunked") + b"nonsense\r\n"
    with target.wire() as wire:
        answers = wire.say(target.request() + broken).hear_out()
    assert [heard.status for heard in answers] == [200, 400]


def test_the_body_of_a_question_that_takes_none_is_not_the_next_question(target: Target):
    hidden = target.request("deleteQueue")
    above = f"GET /healthz HTTP/1.1\r\nhost: yard\r\ncontent-length: {len(hidden)}\r\n\r\n".encode()
    with target.wire() as wire:
        assert [heard.status for heard in wire.say(above + hidden + GOODBYE).hear_out()] == [200, 200]
    assert target.ask("getQueue", QUEUE).status_code == 200


def test_nothing_is_read_after_the_last_request(target: Target):
    with target.wire() as wire:
        assert [heard.status for heard in wire.say(GOODBYE + HEALTHY).hear_out()] == [200]


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "TRACE", "PUT", "PATCH", "DELETE", "PROPFIND"])
def test_another_method_is_refused_and_repeats_nothing(target: Target, method: str):
    for path in ("/healthz", "/v1/getQueue", "/hooks/github/github.com"):
        with target.wire() as wire:
            wire.say(
                f"{method} {path} HTTP/1.1\r\nhost: yard\r\nx-secret: hunter2\r\nconnection: close\r\n\r\n".encode()
            )
            answer = wire.rest()
        assert answer.startswith(b"HTTP/1.1 405 ")
        assert b"hunter2" not in answer
        assert (b"{" in answer) is (method != "HEAD")


def test_an_address_may_name_its_host_and_means_us(target: Target):
    with target.wire() as wire:
        whole = b"GET http://elsewhere.example/healthz HTTP/1.1\r\nhost: elsewhere.example\r\nconnection: close\r\n\r\n"
        assert wire.say(whole).hear().body == b'{"status":"ok"}'


@pytest.mark.parametrize(
    "host", ["", "[", "[::1", "a b", "a/b", "a?b#c", "x]:y", "evil:99999999", "a@b", "%00", "\xff"]
)
def test_whatever_a_client_calls_us_the_pages_are_served(target: Target, host: str):
    for path, status in (("/sign-in", 200), ("/", 303), ("/nothing", 404)):
        with target.wire() as wire:
            wire.say(f"GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n".encode("latin-1"))
            heard = wire.hear()
        assert heard.status == status
        assert heard.headers.get("location", "/").startswith("/")


def test_who_waits_to_be_told_is_told_once(target: Target):
    above, _, body = target.request().partition(b"\r\n\r\n")
    with target.wire() as wire:
        wire.say(above + b"\r\nexpect: 100-continue\r\n\r\n")
        assert wire.hear().status == 100
        assert wire.say(body).hear().status == 200


def test_who_waits_to_be_told_and_may_not_is_refused_at_once(target: Target):
    with target.wire() as wire:
        wire.say(POST + b"content-length: 20971521\r\nexpect: 100-continue\r\n\r\n")
        assert [heard.verdict for heard in wire.hear_out()] == [(401, "missing_token")]


def test_who_says_less_than_announced_and_leaves_changes_nothing(target: Target):
    short = target.request("updateQueue", state="PAUSED")[:-1]
    with target.wire() as wire:
        wire.say(short).leave()
        assert wire.rest() == b""
    assert target.ask("getQueue", QUEUE).json()["state"] == "RUNNING"
