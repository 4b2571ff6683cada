"""Request framing: whatever could be parsed in two ways ends the connection, and nothing after it is read as a request.

The HTTP parser refuses most of it. These tests show that the parser in use does, also after an update.
"""

from contextlib import suppress

import pytest

from tests.hostile.conftest import Target
from tests.support.api_client import QUEUE

HEALTHY = b"GET /healthz HTTP/1.1\r\nhost: mergeyard\r\n\r\n"
LAST = b"GET /healthz HTTP/1.1\r\nhost: mergeyard\r\nconnection: close\r\n\r\n"
POST = b"POST /v1/getQueue HTTP/1.1\r\nhost: mergeyard\r\n"
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
    "chunks twice": POST + CHUNKED + CHUNKED + b"\r\n0\r\n\r\n",
    "a blank before the colon": POST + b"transfer-encoding : chunked\r\n\r\n0\r\n\r\n",
    "a strange blank": POST + b"transfer-encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
    "a folded header": POST + b"x-folded: a\r\n b\r\n\r\n",
    "a folded encoding": POST + b"transfer-encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    "lines that end in LF": b"GET /healthz HTTP/1.1\nhost: mergeyard\n\n",
    "one line that ends in LF": b"GET /healthz HTTP/1.1\r\nhost: mergeyard\nx: y\r\n\r\n",
    "a line that ends in CR": b"GET /healthz HTTP/1.1\r\nhost: mergeyard\rx: y\r\n\r\n",
    "a blank before the first header": b"GET /healthz HTTP/1.1\r\n x: y\r\n\r\n",
    "a header without a name": b"GET /healthz HTTP/1.1\r\n: y\r\n\r\n",
    "a NUL in a header": b"GET /healthz HTTP/1.1\r\nx: a\0b\r\n\r\n",
    "a NUL in the address": b"GET /healthz\0 HTTP/1.1\r\n\r\n",
    "a control byte in the address": b"GET /health\x01z HTTP/1.1\r\n\r\n",
    "a byte beyond ASCII in the address": b"GET /\xff HTTP/1.1\r\n\r\n",
    "a byte beyond ASCII in the query": b"GET /sign-in?next=\xff HTTP/1.1\r\n\r\n",
    "a blank in the address": b"GET /a b HTTP/1.1\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "HTTP/1.2": b"GET /healthz HTTP/1.2\r\n\r\n",
    "a tunnel": b"CONNECT evil.example:443 HTTP/1.1\r\nhost: mergeyard\r\n\r\n",
    "an address that is only a name": b"GET evil.example:443 HTTP/1.1\r\nhost: mergeyard\r\n\r\n",
    "an address without a path": b"GET http://evil.example HTTP/1.1\r\nhost: mergeyard\r\n\r\n",
    "TLS": bytes.fromhex("16030100c8010000c40303") + b"\0" * 32,
}


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_ambiguous_request_is_refused_and_nothing_after_it_is_read(target: Target, name: str):
    with target.connect() as connection:
        (response,) = connection.send(AMBIGUOUS[name] + HEALTHY).receive_all()
    assert response.status == 400
    assert response.headers["connection"] == "close"


READ_TO_THE_END = {
    "compressed chunks": (POST + b"transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 401),
    "chunks in HTTP/1.0": (b"POST /v1/getQueue HTTP/1.0\r\n" + CHUNKED + b"\r\n0\r\n\r\n", 401),
    "HTTP/0.9": (b"GET /healthz\r\n\r\n", 200),
    "HTTP/0.9 by name": (b"GET /healthz HTTP/0.9\r\n\r\n", 200),
}


@pytest.mark.parametrize("name", READ_TO_THE_END)
def test_request_in_an_unusual_form_is_answered_once_and_ends_the_connection(target: Target, name: str):
    request, status = READ_TO_THE_END[name]
    with target.connect() as connection:
        (response,) = connection.send(request + HEALTHY).receive_all()
    assert (response.status, response.headers["connection"]) == (status, "close")


SIZES = [b"+1", b"-1", b"0x1", b" 1", b"1 ", b"1\t", b"g", b"", b"\0", b"1;\0", b"FFFFFFFFFFFFFFFFF", b"1\n", b"1;a\nb"]


@pytest.mark.parametrize("size", SIZES, ids=repr)
def test_chunk_with_an_invalid_size_is_refused(target: Target, size: bytes):
    with target.connect() as connection:
        (response,) = connection.send(
            target.head("getQueue", "transfer-encoding: chunked") + size + b"\r\n{\r\n"
        ).receive_all()
    assert response.status == 400


def test_chunk_longer_than_its_size_is_refused(target: Target):
    with target.connect() as connection:
        chunk = b"1\r\n{}\r\n0\r\n\r\n"
        (response,) = connection.send(target.head("getQueue", "transfer-encoding: chunked") + chunk).receive_all()
    assert response.status == 400


def test_chunk_extensions_and_trailers_are_ignored(target: Target):
    body = target.request().partition(b"\r\n\r\n")[2]
    chunks = b"%04x;a=b;c\r\n%b\r\n0;last\r\nx-after: all\r\n\r\n" % (len(body), body)
    with target.connect() as connection:
        connection.send(target.head("getQueue", "transfer-encoding: chunked") + chunks + LAST)
        assert [response.status for response in connection.receive_all()] == [200, 200]


def test_token_in_a_trailer_gives_no_access(target: Target):
    """A proxy in front can check the headers only."""
    late = f"0\r\nx-api-token: {target.token}\r\ncontent-type: application/json\r\n\r\n".encode()
    with target.connect() as connection:
        response = connection.send(POST + CHUNKED + b"\r\n2\r\n{}\r\n" + late).receive()
    assert response.status_and_code == (401, "missing_token")


@pytest.mark.parametrize("protocol", ["h2c", "websocket", "TLS/1.0"])
@pytest.mark.parametrize("parts", [1, 2], ids=["in one piece", "in two pieces"])
def test_body_of_an_upgrade_request_is_not_parsed_as_the_next_request(target: Target, protocol: str, parts: int):
    hidden = target.request("deleteQueue")
    statuses = {"/v1/getQueue": 400, "/sign-in": 401, "/hooks/github/github.com": 401, "/nothing": 404}
    for path, status in statuses.items():
        own = ("connection: upgrade", f"upgrade: {protocol}", f"content-length: {len(hidden)}")
        head = target.head("getQueue", *own).replace(b"/v1/getQueue", path.encode())
        with target.connect() as connection:
            with suppress(ConnectionError):
                connection.send(*([head + hidden] if parts == 1 else [head, hidden]))
            (response,) = connection.receive_all()
        assert (response.status, response.headers["connection"]) == (status, "close")
    assert target.post("getQueue", QUEUE).status_code == 200


# Several requests on one connection


def test_responses_have_the_order_of_the_requests(target: Target):
    requests = [target.request(), HEALTHY, target.request("getQueue", targetBranch="nowhere"), HEALTHY, LAST]
    with target.connect() as connection:
        responses = connection.send(b"".join(requests)).receive_all()
    assert [response.status for response in responses] == [200, 200, 404, 200, 200]
    assert [b'"ok"' in response.body for response in responses] == [False, True, False, True, True]


@pytest.mark.parametrize("broken", [b"nonsense\r\n\r\n", POST + CHUNKED + b"\r\nnonsense\r\n"], ids=["head", "chunk"])
def test_nothing_is_read_after_invalid_http(target: Target, broken: bytes):
    hidden = target.request("deleteQueue")
    with target.connect() as connection:
        *_, last = connection.send(target.request() + broken + hidden).receive_all()
    assert (last.status, last.headers["connection"]) == (400, "close")
    assert target.post("getQueue", QUEUE).status_code == 200


def test_unexpected_body_is_not_parsed_as_the_next_request(target: Target):
    hidden = target.request("deleteQueue")
    head = f"GET /healthz HTTP/1.1\r\nhost: mergeyard\r\ncontent-length: {len(hidden)}\r\n\r\n".encode()
    with target.connect() as connection:
        assert [response.status for response in connection.send(head + hidden + LAST).receive_all()] == [200]
    assert target.post("getQueue", QUEUE).status_code == 200


def test_nothing_is_read_after_connection_close(target: Target):
    with target.connect() as connection:
        assert [response.status for response in connection.send(LAST + HEALTHY).receive_all()] == [200]


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "TRACE", "PUT", "PATCH", "DELETE", "PROPFIND"])
def test_other_method_is_refused_and_echoes_nothing(target: Target, method: str):
    for path in ("/healthz", "/v1/getQueue", "/hooks/github/github.com"):
        with target.connect() as connection:
            head = f"{method} {path} HTTP/1.1\r\nhost: mergeyard\r\nx-secret: hunter2\r\nconnection: close\r\n\r\n"
            connection.send(head.encode())
            response = connection.read_rest()
        is_allowed = (method, path) == ("HEAD", "/healthz")
        assert response.startswith(b"HTTP/1.1 %d " % (200 if is_allowed else 405))
        assert b"hunter2" not in response
        assert (b"{" in response) is (method != "HEAD")


def test_absolute_address_is_served(target: Target):
    with target.connect() as connection:
        whole = b"GET http://elsewhere.example/healthz HTTP/1.1\r\nhost: elsewhere.example\r\nconnection: close\r\n\r\n"
        assert connection.send(whole).receive().body == b'{"status":"ok"}'


@pytest.mark.parametrize(
    "host", ["", "[", "[::1", "a b", "a/b", "a?b#c", "x]:y", "evil:99999999", "a@b", "%00", "\xff"]
)
def test_pages_are_served_for_any_host_header(target: Target, host: str):
    for path, status in (("/sign-in", 200), ("/", 303), ("/nothing", 404)):
        with target.connect() as connection:
            connection.send(f"GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n".encode("latin-1"))
            response = connection.receive()
        assert response.status == status
        assert response.headers.get("location", "/").startswith("/")


def test_expect_continue_is_answered_once(target: Target):
    head, _, body = target.request().partition(b"\r\n\r\n")
    with target.connect() as connection:
        connection.send(head + b"\r\nexpect: 100-continue\r\n\r\n")
        assert connection.receive().status == 100
        assert connection.send(body).receive().status == 200


@pytest.mark.long
def test_expect_continue_without_a_token_is_refused_at_once(target: Target):
    with target.connect() as connection:
        connection.send(POST + b"content-length: 20971521\r\nexpect: 100-continue\r\n\r\n")
        assert [response.status_and_code for response in connection.receive_all()] == [(401, "missing_token")]


def test_incomplete_request_changes_nothing(target: Target):
    short = target.request("updateQueue", state="PAUSED")[:-1]
    with target.connect() as connection:
        connection.send(short).close_sending()
        assert connection.read_rest() == b""
    assert target.post("getQueue", QUEUE).json()["state"] == "RUNNING"
