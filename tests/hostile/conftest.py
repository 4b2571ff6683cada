"""One server for all: whatever it is sent, it lives on, and has nothing to complain of."""

import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from msgspec import json

from tests.hostile.wire import Wire
from tests.support.api import QUEUE
from tests.support.host_log import HostLog
from tests.support.premises import Premises, new_token
from tests.support.quick_server import QuickServer
from tests.support.repositories import Origin
from tests.support.server import Process, Server

FEW_FILES = 160


class Target:
    """The real process, with one queue and what opens it."""

    def __init__(self, premises: Premises, token: str) -> None:
        self.premises = premises
        self.url = premises.server.url
        self.pid = premises.server.process.pid
        self.token = token
        self.client = httpx.Client(base_url=self.url, headers={"x-api-token": token}, timeout=600)

    def wire(self) -> Wire:
        return Wire(self.url)

    def head(self, endpoint: str = "getQueue", *headers: str, method: str = "POST") -> bytes:
        own = (f"x-api-token: {self.token}", "content-type: application/json")
        return "\r\n".join([f"{method} /v1/{endpoint} HTTP/1.1", "host: yard", *own, *headers, "", ""]).encode()

    def request(self, endpoint: str = "getQueue", **members: Any) -> bytes:
        """A good one."""
        body = json.encode(QUEUE | members)
        return self.head(endpoint, f"content-length: {len(body)}") + body

    def ask(self, endpoint: str, body: bytes | dict[str, Any], **headers: str) -> httpx.Response:
        content = body if isinstance(body, bytes) else json.encode(body)
        own = {"content-type": "application/json"} | {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.post(f"/v1/{endpoint}", content=content, headers=own)


class NarrowServer(Server):
    """May open few files, however many the machine has."""

    def _spawn(self, *arguments: str) -> Process:
        command = ["sh", "-c", f'ulimit -n {FEW_FILES}; exec "$@"', "sh", sys.executable, "-m", "mergeyard", *arguments]
        with (self.folder / "server.log").open("ab") as log:
            return subprocess.Popen(command, stderr=log, env=self.surroundings, cwd=self.folder)


@contextmanager
def a_target(server: Server) -> Generator[Target]:
    origin = Origin.made(server.folder / "repos" / "acme" / "app.git")
    origin.commit("main", {"README": "1"})
    server.start()
    premises = Premises(server, origin, HostLog(origin, server.folder / "host"))
    premises.create_queue()
    target = Target(premises, new_token(server.config))
    try:
        yield target
    finally:
        target.client.close()
        premises.close()
    assert server.complaints() == []


@pytest.fixture(scope="package")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    with a_target(QuickServer(tmp_path_factory.mktemp("hostile"))) as target:
        yield target


@pytest.fixture
def narrow(tmp_path: Path) -> Iterator[Target]:
    with a_target(NarrowServer(tmp_path)) as target:
        yield target
