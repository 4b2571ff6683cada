"""Sends API requests and git commands to a Git host: within a budget, and slowly enough for a public host."""

import base64
import re
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from threading import Event, Lock
from typing import Any, cast

import httpx2
from msgspec import Struct

from tests.support.repositories import ENVIRONMENT

REQUEST_TIMEOUT_S = 30
GIT_TIMEOUT_S = 60
LIMITED = (403, 429)
MAX_WAIT_S = 90
"""The kit waits once for a Git host that limits its requests, and no longer than this."""
MAX_LINES = 12
"""Of the output of git that an observation keeps."""


UNREACHABLE = (httpx2.HTTPError, httpx2.InvalidURL, UnicodeError)
"""Errors of a request to an address that is wrong or does not answer; the last one is about its name."""


class BudgetSpent(Exception):
    """No request is left, or no time, or the user stopped the kit."""


class NotRun(Exception):
    """A step cannot run here. The message says why."""


class Budget:
    """Limits requests and time of one run, and pauses between writes."""

    def __init__(self, max_requests: int, max_seconds: float, pause_s: float) -> None:
        self.used = 0
        self.stopped = Event()
        self._max_requests = max_requests
        self._deadline = time.monotonic() + max_seconds
        self._pause_s = pause_s
        self._last_write = 0.0
        self._lock = Lock()

    def spend(self, *, is_write: bool) -> None:
        with self._lock:
            self.check()
            if is_write:
                self.wait(max(0.0, self._last_write + self._pause_s - time.monotonic()))
                self._last_write = time.monotonic()
            self.used += 1

    def check(self) -> None:
        if self.stopped.is_set():
            raise BudgetSpent("the kit was stopped")
        if self.used >= self._max_requests:
            raise BudgetSpent(f"the limit of {self._max_requests} requests is reached")
        if time.monotonic() >= self._deadline:
            raise BudgetSpent("the time limit is reached")

    def wait(self, seconds: float) -> None:
        """A wait that ends at once when the kit is stopped."""
        self.stopped.wait(seconds)

    def extend(self, requests: int, seconds: float) -> None:
        """For cleaning up, which must also work after a limit was reached or the kit was stopped."""
        self.stopped.clear()
        self._max_requests = self.used + requests
        self._deadline = time.monotonic() + seconds


class Reply(Struct, frozen=True, kw_only=True):
    """What a Git host answered."""

    asked: str
    status: int
    headers: Mapping[str, str]
    body: Any

    @property
    def succeeded(self) -> bool:
        return 200 <= self.status < 300

    def must_succeed(self) -> "Reply":
        if not self.succeeded:
            raise RequestRefused(f"{self.asked} was answered with {self.status}: {self.message}")
        return self

    @property
    def message(self) -> str:
        content = cast(dict[str, Any], self.body) if isinstance(self.body, dict) else {}
        errors = cast(list[Any], content.get("errors") or [])
        details = [str(cast(dict[str, Any], one).get("message", "")) for one in errors if isinstance(one, dict)]
        return " ".join(filter(None, [str(content.get("message") or content.get("error") or ""), *details]))


class RequestRefused(Exception):
    """A request without which the step cannot continue was refused."""


class Client:
    """Requests of one account."""

    def __init__(self, api_url: str, headers: Mapping[str, str], budget: Budget, ca_file: Path | None = None) -> None:
        self.replies: list[Reply] = []
        """Answers to successful reads. Their members are compared with those of the fake."""
        self._budget = budget
        self._client = httpx2.Client(
            headers={"user-agent": "mergeyard-live-kit", **headers},
            timeout=REQUEST_TIMEOUT_S,
            trust_env=False,
            verify=str(ca_file) if ca_file else api_url.startswith("https"),
        )
        self._api_url = api_url.rstrip("/")

    def send(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Reply:
        """Never follows a redirect: the credentials stay with the host that the user named. A whole address must be one
        of that host."""
        url = path if path.startswith("http") else self._api_url + path
        response = self._request(method, url, body, headers or {})
        if response.status_code in LIMITED and 0 < (wait_s := _read_wait(response)) <= MAX_WAIT_S:
            self._budget.wait(wait_s)
            response = self._request(method, url, body, headers or {})
        try:
            content: Any = response.json() if response.content else None
        except ValueError:
            content = {"message": response.text[:200]}
        reply = Reply(asked=f"{method} {path}", status=response.status_code, headers=response.headers, body=content)
        if method == "GET" and reply.status == 200:
            self.replies.append(reply)
        return reply

    def _request(self, method: str, url: str, body: Any, headers: Mapping[str, str]) -> httpx2.Response:
        self._budget.spend(is_write=method != "GET")
        return self._client.request(method, url, json=body, headers=dict(headers))

    def close(self) -> None:
        self._client.close()


def _read_wait(response: httpx2.Response) -> int:
    """How long the Git host asks to wait; 0 if it does not say."""
    text = response.headers.get("retry-after", "")
    return int(text) if text.isdecimal() else 0


class GitResult(Struct, frozen=True):
    succeeded: bool
    output: str
    messages: list[str]
    """Lines that the Git host or git wrote to explain a refusal."""


EXPLAINING = re.compile(r"^(remote: .*|fatal: .*|error: .*|.*\[remote rejected\].*)$", re.MULTILINE)


class Git:
    """git commands of one account, on a local bare repository."""

    def __init__(self, folder: Path, user: str, token: str, budget: Budget, ca_file: Path | None = None) -> None:
        credentials = base64.b64encode(f"{user}:{token}".encode()).decode()
        config = {"http.extraHeader": f"Authorization: Basic {credentials}", "http.followRedirects": "false"}
        config |= {"http.sslCAInfo": str(ca_file)} if ca_file else {}
        self._env = ENVIRONMENT | {"GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_COUNT": str(len(config))}
        for at, (key, value) in enumerate(config.items()):
            self._env |= {f"GIT_CONFIG_KEY_{at}": key, f"GIT_CONFIG_VALUE_{at}": value}
        self._folder = folder
        self._budget = budget

    def run(self, verb: str, url: str, *arguments: str) -> GitResult:
        self._budget.spend(is_write=verb == "push")
        options = [word for word in arguments if word.startswith("--")]
        refs = [word for word in arguments if not word.startswith("--")]
        command = ["git", "--git-dir", str(self._folder), verb, *options, url, *refs]
        result = subprocess.run(
            command, env=self._env, capture_output=True, text=True, check=False, timeout=GIT_TIMEOUT_S
        )
        messages = [line.strip() for line in EXPLAINING.findall(result.stderr)]
        return GitResult(result.returncode == 0, result.stdout, [line for line in messages if line][:MAX_LINES])
