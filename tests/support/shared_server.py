"""One server that many browser tests share; each test gets its own queue.

Code that needs an event loop runs in another thread than the browser's.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from msgspec import json

from mergeyard.adapters.clock import WallClock
from mergeyard.cli import token
from tests.support.api_client import QUEUE, ApiClient
from tests.support.ci import REQUIRED_CHECKS
from tests.support.environment import QueueEnvironment, run_command
from tests.support.forked_server import ForkedServer
from tests.support.host_log import HostLog
from tests.support.identity_provider import CLIENT_ID, CLIENT_SECRET, IdentityProvider
from tests.support.repositories import Files, Origin

HOST = "git.local"
HOST_WITH_LOCAL_CHECKS = "own.local"
"""A host where the service runs the checks itself: they write much output and fail if a file `bad` exists."""
CHECKS_CONFIG = """
version = 1
[checks]
unit = "seq 200; printf '%0200d\\\\n' 7; echo '<b>2 of 90</b> tests failed'; test ! -f bad"
lint = "true"
"""
LOCAL_CHECKS_HOST_CONFIG = """
[hosts."own.local"]
provider = "git"
root = "own"
checks = "run"
"""
OIDC_CONFIG = """
[oidc]
issuer = "{issuer}"
client_id = "{client}"
client_secret_file = "secret"
label = "Acme"

[oidc.scopes]
devs = ["submit"]
"""

Done = TypeVar("Done")


class SharedServer:
    def __init__(self, folder: Path) -> None:
        (folder / "secret").write_text(CLIENT_SECRET)
        self.provider = IdentityProvider(WallClock())
        self.provider.requires_consent = True
        self.provider.issuer = self.provider.issuer.replace("127.0.0.1", "localhost")  # another site, for browsers
        self.server = ForkedServer(folder, allow_private_webhooks=True)
        tables = LOCAL_CHECKS_HOST_CONFIG + OIDC_CONFIG.format(issuer=self.provider.issuer, client=CLIENT_ID)
        self.server.config.write_text(self.server.config.read_text() + tables)
        roots = {HOST: "repos", HOST_WITH_LOCAL_CHECKS: "own"}
        self.origins = {host: Origin.create(folder / root / "acme" / "app.git") for host, root in roots.items()}
        for origin in self.origins.values():
            origin.commit("main", {".mergeyard.toml": CHECKS_CONFIG})
        self.host_log = HostLog(self.origins[HOST], folder / "host")
        self.server.start()
        self.provider.redirect_uri = f"{self.server.url}/sign-in/back"
        self.numbers = count(1)
        self._queue_numbers = count(1)

    def token(self, *scopes: str, name: str = "Grace", repo: str = "") -> str:
        return _token(self.server.config, name, scopes, repo)

    def create_queue(self, host: str = HOST, **settings: Any) -> "SharedServerQueue":
        branch = f"target-{next(self._queue_numbers)}"
        self.origins[host].branch(branch, base="main")
        queue = SharedServerQueue(self, host, branch)
        queue.create_queue(**settings)
        return queue

    def close(self) -> None:
        self.server.stop()
        self.provider.close()
        assert not self.server.logged_errors(), self.server.logged_errors()


class SharedServerQueue(QueueEnvironment):
    """A queue whose CI reports only when the test says so."""

    def __init__(self, shared_server: SharedServer, host: str, branch: str) -> None:
        queue = {"repo": QUEUE["repo"] | {"host": host}, "targetBranch": branch}
        api = ApiClient(shared_server.server, shared_server.token("admin"), shared_server.host_log, queue)
        super().__init__(shared_server.origins[host], shared_server.host_log, api)
        self.ci.enabled = False
        self.shared_server = shared_server
        self.repo = f"{host}/acme/app"

    def queue_path(self, kind: str = "queues") -> str:
        return f"/{kind}/{self.repo}:{self.target_branch}"

    def pull_request_path(self, number: int) -> str:
        return f"/pulls/{self.repo}/{number}?branch={quote(self.target_branch)}"

    def open(self, files: Files | None = None, **facts: object) -> int:
        """Opens a pull request; `facts` is its metadata on the host, such as title, author and branch."""
        number = next(self.shared_server.numbers)
        branch = str(facts.get("branch", f"topic-{number}"))
        self.origin.branch(branch, base=self.target_branch, files=files or {f"file{number}": "1"})
        defaults = {
            "title": f"Change {number}",
            "author": "Ada",
            "base": self.target_branch,
            "branch": branch,
            "state": "open",
        }
        meta = json.encode({"draft": False, **defaults, **facts})
        self.origin.set_ref(f"refs/pull/{number}/meta", self.origin.blob(meta))
        self.origin.set_ref(f"refs/pull/{number}/head", self.origin.tip(branch))
        return number

    def start_testing(self, *numbers: int) -> None:
        """Submits these in order and waits until all are tested."""
        self.submit_in_order(*numbers)
        self.wait_for("testing", *numbers)

    def merge(self, *numbers: int) -> None:
        self.start_testing(*numbers)
        for number in numbers:
            self.report(number, "success")
        self.wait_for("merged", *numbers)

    def report(self, number: int, state: str, names: tuple[str, ...] | None = None, **more: Any) -> None:
        """Reports on the run that tests this one: all required checks, unless names are given."""
        tip = self.test_branch_tip(number)
        for context in names or REQUIRED_CHECKS:
            self.api.post("reportCommitStatus", sha=tip, context=context, state=state, **more)


@cache
def _token(config: Path, name: str, scopes: tuple[str, ...], repo: str) -> str:
    options = [*(option for scope in scopes for option in ("--scope", scope)), *(("--repo", repo) if repo else ())]
    arguments = ("create", "--name", name, *options, "--config", str(config))
    return run_in_thread(lambda: run_command(token.app, *arguments)).strip()


def run_in_thread(act: Callable[[], Done]) -> Done:
    with ThreadPoolExecutor(1) as other:
        return other.submit(act).result()
