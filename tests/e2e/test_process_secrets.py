"""The secrets of a running server stay unreadable for other processes of its user.

Root may read every process, so as root both the server and its reader run without capabilities: the kernel then treats
them as two processes of one ordinary user.
"""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest

from mergeyard.adapters.host_plain.editor import NewPullRequest, open_pull_request
from tests.support.api_client import QUEUE
from tests.support.environment import new_token
from tests.support.polling import eventually
from tests.support.repositories import Origin
from tests.support.server import Process, Server

SECRET = "MERGEYARD_HOST_GITHUB_COM_TOKEN"
WITHOUT_CAPABILITIES = ("setpriv", "--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all")
PREFIX = WITHOUT_CAPABILITIES if os.geteuid() == 0 else ()

pytestmark = [
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="only Linux shows processes under /proc"),
    pytest.mark.skipif(bool(PREFIX) and not shutil.which("setpriv"), reason="root needs setpriv to drop capabilities"),
]


class UnprivilegedServer(Server):
    def _spawn(self, *arguments: str) -> Process:
        command = [*PREFIX, sys.executable, "-m", "mergeyard", *arguments]
        with self._log.open("ab") as log:
            return subprocess.Popen(command, stderr=log, env=self.environment, cwd=self.folder)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = UnprivilegedServer(tmp_path_factory.mktemp("server"), open_metrics=True)
    server.environment[SECRET] = "hunter2"
    server.start()
    yield server
    server.stop()


def read_unprivileged(path: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*PREFIX, "head", "--bytes=10000", path], capture_output=True, check=False)


@pytest.mark.long
def test_another_process_of_the_same_user_cannot_read_the_server(server: Server):
    own = read_unprivileged("/proc/self/environ")
    assert (own.returncode, b"PATH=" in own.stdout) == (0, True)
    for name in ("environ", "mem", "maps"):
        found = read_unprivileged(f"/proc/{server.process.pid}/{name}")
        assert (found.returncode, found.stdout) == (1, b""), name
        assert b"Permission denied" in found.stderr or b"Operation not permitted" in found.stderr


def test_processes_that_the_server_starts_do_not_inherit_its_secrets(server: Server):
    """While a queue is used, the server keeps git processes."""
    origin = Origin.create(server.folder / "repos" / "acme" / "app.git")
    origin.commit("main", {"a": "1"})
    origin.branch("topic", base="main", files={"b": "1"})
    number = asyncio.run(open_pull_request(origin.path, NewPullRequest(head="topic", base="main")))
    headers = {"x-api-token": new_token(server.config)}
    for endpoint, members in (("createQueue", {}), ("submitPullRequest", {"pr": {"number": number}})):
        assert httpx2.post(f"{server.url}/v1/{endpoint}", json=QUEUE | members, headers=headers).status_code == 200
    environments = eventually(lambda: [each for each in child_environments(server) if b"PATH=" in each])
    assert not any(b"hunter2" in environment for environment in environments)


def child_environments(server: Server) -> Iterator[bytes]:
    """Without a child that does not run its own program yet: until then it is a copy of the server, and as unreadable
    for other processes."""
    own_program = Path(f"/proc/{server.process.pid}/cmdline").read_bytes()
    for thread in Path(f"/proc/{server.process.pid}/task").glob("*/children"):
        for child in thread.read_text().split():
            with suppress(OSError):  # It has ended.
                if Path(f"/proc/{child}/cmdline").read_bytes() != own_program:
                    yield Path(f"/proc/{child}/environ").read_bytes()


@pytest.mark.long
def test_server_still_reads_its_own_process_metrics(server: Server):
    metrics = httpx2.get(f"{server.url}/metrics").text
    assert "\nprocess_open_fds " in metrics
    assert "\nprocess_resident_memory_bytes " in metrics
