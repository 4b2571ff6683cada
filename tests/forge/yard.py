"""A real Mergeyard beside a real forge: the server as a process of its own, its API, and a CI that reports there."""

import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from mergeyard.settings.forge_hosts import variable
from tests.forge.people import BOT, HOST, SCOPES, People
from tests.forge.project import Project
from tests.support.patience import eventually
from tests.support.server import Server, in_toml

SECRET = "hush"
CHECK = "unit"
BAD = "bad.txt"
"""Whoever brings this file fails the check."""
CI_LOOKS_EVERY = 0.2
EVENTS = (
    *("push", "status", "issue_comment"),
    *("pull_request", "pull_request_sync", "pull_request_label", "pull_request_comment"),
)


class ForgeYard:
    def __init__(self, folder: Path, people: People, project: Project) -> None:
        self.project = project
        self.server = Server(folder)
        host = {"provider": "gitea", "url": people.url, "poll_seconds": 2}
        lines = "".join(f"{key} = {in_toml(value)}\n" for key, value in host.items())
        self.server.config.write_text(f'data_dir = "data"\nlog_format = "json"\n[hosts."{HOST}"]\n{lines}')
        secrets = {"token": people.token_of(BOT, *SCOPES), "webhook_secret": SECRET}
        self.server.surroundings |= {variable(HOST, name): secret for name, secret in secrets.items()}
        self.command("db", "migrate")
        token = self.command("token", "create", "--name", "tests", "--scope", "admin").stdout.strip()
        self._client = httpx.Client(headers={"x-api-token": token}, timeout=30, trust_env=False)
        repo = {"host": HOST, "owner": project.owner, "name": project.name}
        self._queue = {"repo": repo, "targetBranch": "main"}

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        call = [sys.executable, "-m", "mergeyard", *words, "--config", str(self.server.config)]
        return subprocess.run(call, env=self.server.surroundings, capture_output=True, text=True, check=False)

    def hear(self) -> None:
        """From now on the forge tells what happens there."""
        self.project.send_news_to(f"{self.server.url}/hooks/gitea/{HOST}", SECRET, *EVENTS)

    def ask(self, endpoint: str, **members: Any) -> dict[str, Any]:
        reply = self._client.post(f"{self.server.url}/v1/{endpoint}", json=self._queue | members)
        assert reply.status_code == 200, reply.text
        return reply.json()

    def submit(self, number: int) -> None:
        self.ask("submitPullRequest", pr={"number": number})

    def pull(self, number: int) -> dict[str, Any]:
        reply = self._client.post(
            f"{self.server.url}/v1/getSubmittedPullRequest", json=self._queue | {"pr": {"number": number}}
        )
        return reply.json()

    def comes_to(self, number: int, state: str) -> dict[str, Any]:
        eventually(lambda: self.pull(number).get("state") == state, but=lambda: self.pull(number))
        return self.pull(number)

    def the_comment(self, number: int) -> str:
        """The one that tells the state; there is never a second."""
        (ours,) = [text for text in self.project.comments(number) if text.startswith("<!-- mergeyard -->")]
        return ours

    def close(self) -> None:
        self._client.close()
        if self.server.alive:
            self.server.stop()


class Ci:
    """Tests every branch of ours once, as a forge's runner would, and reports to the forge."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._tested = set[str]()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    def _work(self) -> None:
        while not self._over.wait(CI_LOOKS_EVERY):
            for ref, sha in self._project.refs().items():
                if ref.startswith("refs/heads/mergeyard/") and sha not in self._tested:
                    self._tested.add(sha)
                    self._project.report(sha, CHECK, self._verdict(ref), target_url="https://ci.example.com/1")

    def _verdict(self, ref: str) -> str:
        try:
            tip = self._project.fetch(ref)
        except subprocess.CalledProcessError:
            return "error"  # it is over already, and nobody asks any more
        return "failure" if BAD in self._project.origin.files(tip) else "success"


@contextmanager
def a_forge_yard(folder: Path, people: People, project: Project) -> Generator[ForgeYard]:
    project.protect("main", [CHECK])
    yard, ci = ForgeYard(folder, people, project), Ci(project)
    yard.server.start()
    ci.start()
    try:
        yard.ask("createQueue")
        yield yard
    finally:
        ci.stop()
        yard.close()
