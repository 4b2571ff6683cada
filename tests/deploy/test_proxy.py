"""Caddy with the shipped Caddyfile in front of a real server. It does what the server leaves to its proxy."""

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager

import httpx2
import pytest
from msgspec import Struct, json

from mergeyard.api.middleware import MAX_REQUESTS
from mergeyard.api.request_body import MAX_BODY_BYTES, MAX_WEBHOOK_BODY_BYTES, BodyReader
from mergeyard.cli.server import KEEP_ALIVE_S
from mergeyard.web.sign_in import MAX_SIGN_IN_FORMS
from tests.deploy.files import CADDYFILE, COMPOSE, DEPLOY
from tests.support.api_client import QUEUE
from tests.support.environment import ServerEnvironment, new_token
from tests.support.polling import eventually

(VERSION,) = re.findall(r"image: caddy:([\d.]+)", COMPOSE)
HOW_TO_GET_CADDY = (
    "caddy is not installed: put it on PATH or set MERGEYARD_CADDY to its path. To build it: "
    f"go install github.com/caddyserver/caddy/v2/cmd/caddy@v{VERSION}"
)
READ_HEADER_TIMEOUT_S = 1
"""Instead of ten seconds: the test waits for it."""
TIMEOUT_S = 10


def setting(name: str) -> str:
    (value,) = re.findall(rf"^\s*{name} (\S+)$", CADDYFILE, re.MULTILINE)
    return value


def test_limits_of_the_proxy_fit_those_of_the_server():
    assert setting("max_size") == f"{MAX_WEBHOOK_BODY_BYTES // 1024**2}MiB"
    assert int(setting("max_conns_per_host")) > MAX_REQUESTS
    assert int(setting("keepalive").removesuffix("s")) < KEEP_ALIVE_S
    assert setting("read_body") == "60s"
    assert vars(BodyReader())["_timeout_s"] == 60


class Proxy(Struct, frozen=True):
    url: str
    address: tuple[str, int]
    environment: ServerEnvironment
    token: str
    client: httpx2.Client

    def post(self, body: bytes, endpoint: str = "getQueue", **headers: str) -> httpx2.Response:
        own = {"x-api-token": self.token, "content-type": "application/json"} | headers
        return self.client.post(f"/v1/{endpoint}", content=body, headers=own)

    def receive(self, request: bytes) -> bytes:
        """All that is received until the proxy closes the connection."""
        with socket.create_connection(self.address, TIMEOUT_S) as connection, connection.makefile("rb") as received:
            connection.sendall(request)
            return received.read()


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    caddy = os.environ.get("MERGEYARD_CADDY") or shutil.which("caddy")
    if caddy is None:
        pytest.skip(HOW_TO_GET_CADDY)
    environment = ServerEnvironment.start(tmp_path_factory.mktemp("proxy"), trusted_proxies="127.0.0.1")
    environment.create_queue()
    try:
        with running_caddy(caddy, environment) as url, httpx2.Client(base_url=url, timeout=TIMEOUT_S) as client:
            address = ("127.0.0.1", int(url.rpartition(":")[2]))
            yield Proxy(url, address, environment, new_token(environment.server.config), client)
    finally:
        environment.close()
    assert environment.server.logged_errors() == []


@contextmanager
def running_caddy(caddy: str, environment: ServerEnvironment) -> Generator[str]:
    folder = environment.server.folder
    url, health_url = (f"http://127.0.0.1:{port}" for port in free_ports(2))
    variables = {
        "PUBLIC_URL": url,
        "HEALTH_ADDRESS": health_url,
        "REPLICAS": environment.server.url.removeprefix("http://"),
        "READ_HEADER_TIMEOUT": f"{READ_HEADER_TIMEOUT_S}s",
        "HOME": str(folder),
    }
    command = [caddy, "run", "--config", str(DEPLOY / "compose" / "Caddyfile"), "--adapter", "caddyfile"]
    log = folder / "caddy.log"
    with log.open("wb") as file, subprocess.Popen(command, stderr=file, env=variables) as process:
        try:
            eventually(lambda: process.poll() is not None or responds(f"{health_url}/"), 30, log.read_text)
            assert process.poll() is None, log.read_text()
            eventually(lambda: responds(f"{url}/readyz"), 30, log.read_text)
            yield url
        finally:
            process.kill()


def free_ports(count: int) -> list[int]:
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [listener.getsockname()[1] for listener in listeners]
    for listener in listeners:
        listener.close()
    return ports


def responds(url: str) -> bool:
    try:
        return httpx2.get(url).status_code == 200
    except httpx2.TransportError:
        return False


def padded(size: int) -> bytes:
    """A good request of exactly this many bytes."""
    body = json.encode(QUEUE | {"padding": ""})
    return body[:-2] + b"a" * (size - len(body)) + b'"}'


def test_request_passes_and_the_client_cannot_forge_its_address(proxy: Proxy):
    assert proxy.post(json.encode(QUEUE)).json()["state"] == "RUNNING"
    forged = {"x-api-token": "my_other", "x-request-id": "from-a-test", "x-forwarded-for": "192.0.2.9"}
    refused = proxy.post(json.encode(QUEUE), **forged)
    assert (refused.status_code, refused.headers["x-request-id"]) == (401, "from-a-test")
    log = proxy.environment.server.log_entries
    (rejected,) = eventually(lambda: [entry for entry in log() if entry.get("request_id") == "from-a-test"])
    assert rejected["client"] == "127.0.0.1"


def test_body_of_20_mib_passes_and_one_byte_more_is_refused(proxy: Proxy):
    assert proxy.post(padded(MAX_BODY_BYTES)).status_code == 200
    assert proxy.post(padded(MAX_BODY_BYTES + 1)).status_code == 413


def test_refusal_of_a_large_body_is_not_lost(proxy: Proxy):
    """The server answers before it has read the body; the proxy must not report a broken connection instead."""
    for _ in range(10):
        refused = proxy.post(padded(5_000_000), **{"x-api-token": "my_other"})
        assert (refused.status_code, refused.json()["code"]) == (401, "invalid_token")


@pytest.mark.parametrize("request_line", ["GET / HTTP/1.1\r\nx: {}", "GET /{} HTTP/1.1"], ids=["header", "path"])
def test_large_headers_are_refused(proxy: Proxy, request_line: str):
    request = request_line.format("a" * 100_000) + "\r\nhost: mergeyard\r\n\r\n"
    assert proxy.receive(request.encode()).startswith(b"HTTP/1.1 431 ")


def test_client_with_a_slow_header_is_disconnected(proxy: Proxy):
    assert b" 200 " not in proxy.receive(b"GET /healthz HTTP/1.1\r\nx-slow: a")


def test_slow_body_does_not_reach_the_server(proxy: Proxy):
    """The proxy keeps it until it has all of it. The server would refuse further sign-ins otherwise."""
    host = proxy.url.removeprefix("http://")
    head = f"POST /sign-in HTTP/1.1\r\nhost: {host}\r\ncontent-length: 100000\r\n\r\n"
    with ExitStack() as connections:
        for _ in range(MAX_SIGN_IN_FORMS + 50):
            connection = connections.enter_context(socket.create_connection(proxy.address, TIMEOUT_S))
            connection.sendall(head.encode() + b"a" * 50_000)
        statuses = {proxy.client.post("/sign-in", data={"token": "my_other"}).status_code for _ in range(20)}
    assert statuses == {401}


def test_trailers_do_not_reach_the_server(proxy: Proxy):
    """The HTTP server would add them to the headers."""
    host = proxy.url.removeprefix("http://")
    lines = [
        *("POST /v1/getQueue HTTP/1.1", f"host: {host}", "transfer-encoding: chunked", "trailer: x-api-token"),
        *("content-type: application/json", "connection: close", "", "2", "{}", "0"),
        *(f"x-api-token: {proxy.token}", "", ""),
    ]
    assert proxy.receive("\r\n".join(lines).encode()).startswith(b"HTTP/1.1 401 ")


def test_metrics_of_one_replica_are_hidden(proxy: Proxy):
    assert proxy.client.get("/metrics", headers={"x-api-token": proxy.token}).status_code == 404


def test_live_events_flow(proxy: Proxy):
    assert proxy.client.post("/sign-in", data={"token": proxy.token, "next": "/"}).status_code == 303
    with proxy.client.stream("GET", "/live/git.local/acme/app:main") as stream:
        lines = (line for line in stream.iter_lines() if line.startswith("event: "))
        assert next(lines) == "event: follow"
        proxy.environment.update_queue(state="PAUSED")
        assert next(lines) == "event: change"
    proxy.environment.update_queue(state="RUNNING")
