"""One server for all tests: whatever it receives, it stays alive and logs no error."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest
from msgspec import json

from tests.hostile.raw_connection import RawConnection
from tests.support.api_client import QUEUE
from tests.support.environment import ServerEnvironment, new_token
from tests.support.forked_server import ForkedServer
from tests.support.host_log import HostLog
from tests.support.repositories import Origin
from tests.support.server import Server


class Target:
    """The real server process, with one queue and a token for it."""

    def __init__(self, environment: ServerEnvironment, token: str) -> None:
        self.environment = environment
        self.url = environment.server.url
        self.pid = environment.server.process.pid
        self.token = token
        self.client = httpx2.Client(base_url=self.url, headers={"x-api-token": token}, timeout=600)

    def connect(self) -> RawConnection:
        return RawConnection(self.url)

    def head(self, endpoint: str = "getQueue", *headers: str, method: str = "POST") -> bytes:
        own = (f"x-api-token: {self.token}", "content-type: application/json")
        return "\r\n".join([f"{method} /v1/{endpoint} HTTP/1.1", "host: mergeyard", *own, *headers, "", ""]).encode()

    def request(self, endpoint: str = "getQueue", **members: Any) -> bytes:
        """A valid request."""
        body = json.encode(QUEUE | members)
        return self.head(endpoint, f"content-length: {len(body)}") + body

    def post(self, endpoint: str, body: bytes | dict[str, Any], **headers: str) -> httpx2.Response:
        content = body if isinstance(body, bytes) else json.encode(body)
        own = {"content-type": "application/json"} | {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.post(f"/v1/{endpoint}", content=content, headers=own)


@contextmanager
def a_target(server: Server) -> Generator[Target]:
    origin = Origin.create(server.folder / "repos" / "acme" / "app.git")
    origin.commit("main", {"README": "1"})
    server.start()
    environment = ServerEnvironment(server, origin, HostLog(origin, server.folder / "host"))
    environment.create_queue()
    target = Target(environment, new_token(server.config))
    try:
        yield target
    finally:
        target.client.close()
        environment.close()
    assert server.logged_errors() == []


@pytest.fixture(scope="package")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    with a_target(ForkedServer(tmp_path_factory.mktemp("hostile"))) as target:
        yield target
