"""A real Mergeyard server for tests on a real forge: its own process, its API, and a CI that reports to the forge."""

import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from mergeyard.settings.loading import to_secret_variable
from tests.forge.gitea_admin import BOT, HOST, SCOPES, GiteaAdmin
from tests.forge.project import Project
from tests.support.polling import eventually
from tests.support.server import Server, to_toml

SECRET = "hush"
CHECK = "unit"
BAD = "bad.txt"
"""A pull request with this file fails the check."""
CI_POLL_INTERVAL_S = 0.2
EVENTS = (
    *("push", "status", "issue_comment"),
    *("pull_request", "pull_request_sync", "pull_request_label", "pull_request_comment"),
)


class MergeyardServer:
    def __init__(self, folder: Path, admin: GiteaAdmin, project: Project) -> None:
        self.project = project
        self.server = Server(folder)
        host = {"provider": "gitea", "url": admin.url, "poll_seconds": 2}
        lines = "".join(f"{key} = {to_toml(value)}\n" for key, value in host.items())
        self.server.config.write_text(f'data_dir = "data"\nlog_format = "json"\n[hosts."{HOST}"]\n{lines}')
        secrets = {"token": admin.token_of(BOT, *SCOPES), "webhook_secret": SECRET}
        self.server.environment |= {to_secret_variable(HOST, name): secret for name, secret in secrets.items()}
        self.command("db", "migrate")
        token = self.command("token", "create", "--name", "tests", "--scope", "admin").stdout.strip()
        self._client = httpx.Client(headers={"x-api-token": token}, timeout=30, trust_env=False)
        repo = {"host": HOST, "owner": project.owner, "name": project.name}
        self._queue = {"repo": repo, "targetBranch": "main"}

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        call = [sys.executable, "-m", "mergeyard", *words, "--config", str(self.server.config)]
        return subprocess.run(call, env=self.server.environment, capture_output=True, text=True, check=False)

    def enable_webhooks(self) -> None:
        """From now on the forge sends webhooks."""
        self.project.add_webhook(f"{self.server.url}/hooks/gitea/{HOST}", SECRET, *EVENTS)

    def post(self, endpoint: str, **members: Any) -> dict[str, Any]:
        response = self._client.post(f"{self.server.url}/v1/{endpoint}", json=self._queue | members)
        assert response.status_code == 200, response.text
        return response.json()

    def submit(self, number: int) -> None:
        self.post("submitPullRequest", pr={"number": number})

    def submission(self, number: int) -> dict[str, Any]:
        response = self._client.post(
            f"{self.server.url}/v1/getSubmittedPullRequest", json=self._queue | {"pr": {"number": number}}
        )
        return response.json()

    def wait_for_state(self, number: int, state: str) -> dict[str, Any]:
        eventually(lambda: self.submission(number).get("state") == state, describe=lambda: self.submission(number))
        return self.submission(number)

    def status_comment(self, number: int) -> str:
        """The comment that shows the state; there is never a second one."""
        (comment,) = [text for text in self.project.comments(number) if text.startswith("<!-- mergeyard -->")]
        return comment

    def close(self) -> None:
        self._client.close()
        if self.server.alive:
            self.server.stop()


class Ci:
    """Tests every test branch once, as a CI of the forge would, and reports to the forge."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._tested = set[str]()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._test_branches)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def _test_branches(self) -> None:
        while not self._stopped.wait(CI_POLL_INTERVAL_S):
            for ref, sha in self._project.refs().items():
                if ref.startswith("refs/heads/mergeyard/") and sha not in self._tested:
                    self._tested.add(sha)
                    self._project.report(sha, CHECK, self._result_of(ref), target_url="https://ci.example.com/1")

    def _result_of(self, ref: str) -> str:
        try:
            tip = self._project.fetch(ref)
        except subprocess.CalledProcessError:
            return "error"  # the branch is already deleted, and its result is not needed
        return "failure" if BAD in self._project.origin.files(tip) else "success"


@contextmanager
def a_mergeyard_server(folder: Path, admin: GiteaAdmin, project: Project) -> Generator[MergeyardServer]:
    project.protect("main", [CHECK])
    mergeyard, ci = MergeyardServer(folder, admin, project), Ci(project)
    mergeyard.server.start()
    ci.start()
    try:
        mergeyard.post("createQueue")
        yield mergeyard
    finally:
        ci.stop()
        mergeyard.close()
