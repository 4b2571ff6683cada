"""A real Mergeyard server process with one queue of a repository on a Git host, and requests to it."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2

from mergeyard.settings.loading import to_secret_variable
from tests.support.polling import TIMEOUT_S, eventually
from tests.support.server import Server, to_toml


class QueueServer:
    def __init__(
        self,
        folder: Path,
        host: str,
        settings: Mapping[str, object],
        secrets: Mapping[str, str],
        repo: tuple[str, str],
    ) -> None:
        """`settings` and `secrets` are those of the Git host; `repo` is the owner and the name."""
        self.host = host
        self.server = Server(folder)
        lines = "".join(f"{key} = {to_toml(value)}\n" for key, value in settings.items())
        self.server.config.write_text(f'data_dir = "data"\nlog_format = "json"\n[hosts."{host}"]\n{lines}')
        self.server.environment |= {to_secret_variable(host, name): secret for name, secret in secrets.items()}
        self.command("db", "migrate")
        token = self.command("token", "create", "--name", "tests", "--scope", "admin").stdout.strip()
        self._client = httpx2.Client(headers={"x-api-token": token}, timeout=30, trust_env=False)
        self._queue = {"repo": {"host": host, "owner": repo[0], "name": repo[1]}, "targetBranch": "main"}

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        call = [sys.executable, "-m", "mergeyard", *words, "--config", str(self.server.config)]
        return subprocess.run(call, env=self.server.environment, capture_output=True, text=True, check=False)

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

    def wait_for_state(self, number: int, *states: str, timeout_s: float = TIMEOUT_S) -> dict[str, Any]:
        """Waits until the pull request has one of the states."""
        eventually(
            lambda: self.submission(number).get("state") in states,
            timeout_s,
            describe=lambda: self.submission(number),
        )
        return self.submission(number)

    def close(self) -> None:
        self._client.close()
        if self.server.alive:
            self.server.stop()
