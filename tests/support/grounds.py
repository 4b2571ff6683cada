"""Grounds that browsers visit: one server for many tests, and for each test a track, which is a queue of its own.

What needs an event loop is done in a thread of its own, beside the browser's.
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
from tests.support.api import QUEUE, Api
from tests.support.ci import REQUIRED
from tests.support.host_log import HostLog
from tests.support.identity_provider import CLIENT, SECRET, IdentityProvider
from tests.support.quick_server import QuickServer
from tests.support.repositories import Files, Origin
from tests.support.surroundings import Surroundings, command

HOST = "git.local"
OWN_CHECKS = "own.local"
"""A host where the service runs the checks itself: they say a lot, and are red where a file is bad."""
CHECKS = """
version = 1
[checks]
unit = "seq 200; printf '%0200d\\\\n' 7; echo '<b>2 of 90</b> tests failed'; test ! -f bad"
lint = "true"
"""
HOST_WITH_CHECKS = """
[hosts."own.local"]
provider = "git"
root = "own"
checks = "run"
"""
SIGNING_IN = """
[oidc]
issuer = "{issuer}"
client_id = "{client}"
client_secret_file = "secret"
label = "Acme"

[oidc.scopes]
devs = ["submit"]
"""

Done = TypeVar("Done")


class Grounds:
    def __init__(self, folder: Path) -> None:
        (folder / "secret").write_text(SECRET)
        self.provider = IdentityProvider(WallClock())
        self.provider.asks_first = True
        self.provider.issuer = self.provider.issuer.replace("127.0.0.1", "localhost")  # another site, for browsers
        self.server = QuickServer(folder, allow_private_webhooks=True)
        tables = HOST_WITH_CHECKS + SIGNING_IN.format(issuer=self.provider.issuer, client=CLIENT)
        self.server.config.write_text(self.server.config.read_text() + tables)
        roots = {HOST: "repos", OWN_CHECKS: "own"}
        self.origins = {host: Origin.made(folder / root / "acme" / "app.git") for host, root in roots.items()}
        for origin in self.origins.values():
            origin.commit("main", {".mergeyard.toml": CHECKS})
        self.host_log = HostLog(self.origins[HOST], folder / "host")
        self.server.start()
        self.provider.back = f"{self.server.url}/sign-in/back"
        self.numbers = count(1)
        self._tracks = count(1)

    def token(self, *scopes: str, name: str = "Grace", repo: str = "") -> str:
        return _token(self.server.config, name, scopes, repo)

    def track(self, host: str = HOST, **settings: Any) -> "Track":
        branch = f"line-{next(self._tracks)}"
        self.origins[host].branch(branch, upon="main")
        track = Track(self, host, branch)
        track.create_queue(**settings)
        return track

    def close(self) -> None:
        self.server.stop()
        self.provider.close()
        assert not self.server.complaints(), self.server.complaints()


class Track(Surroundings):
    """Its CI speaks only when told to."""

    def __init__(self, grounds: Grounds, host: str, branch: str) -> None:
        queue = {"repo": QUEUE["repo"] | {"host": host}, "targetBranch": branch}
        api = Api(grounds.server, grounds.token("admin"), grounds.host_log, queue)
        super().__init__(grounds.origins[host], grounds.host_log, api)
        self.ci.working = False
        self.grounds = grounds
        self.repo = f"{host}/acme/app"

    def page(self, kind: str = "queues") -> str:
        return f"/{kind}/{self.repo}:{self.target}"

    def pull_page(self, number: int) -> str:
        return f"/pulls/{self.repo}/{number}?branch={quote(self.target)}"

    def open(self, files: Files | None = None, **facts: object) -> int:
        """A pull request with any title, author and branch: `facts` is what the host says of it."""
        number = next(self.grounds.numbers)
        branch = str(facts.get("branch", f"topic-{number}"))
        self.origin.branch(branch, upon=self.target, files=files or {f"file{number}": "1"})
        usual = {"title": f"Change {number}", "author": "Ada", "base": self.target, "branch": branch, "state": "open"}
        meta = json.encode({"draft": False, **usual, **facts})
        self.origin.set(f"refs/pull/{number}/meta", self.origin.blob(meta))
        self.origin.set(f"refs/pull/{number}/head", self.origin.tip(branch))
        return number

    def test(self, *numbers: int) -> None:
        """One behind the other."""
        self.line_up(*numbers)
        self.wait_for("testing", *numbers)

    def merge(self, *numbers: int) -> None:
        self.test(*numbers)
        for number in numbers:
            self.report(number, "success")
        self.wait_for("merged", *numbers)

    def report(self, number: int, state: str, names: tuple[str, ...] | None = None, **more: Any) -> None:
        """On the run that tests this one; on all that is required, unless it is named."""
        tip = self.branch_of(number)
        for context in names or REQUIRED:
            self.api.post("reportCommitStatus", sha=tip, context=context, state=state, **more)


@cache
def _token(config: Path, name: str, scopes: tuple[str, ...], repo: str) -> str:
    options = [*(option for scope in scopes for option in ("--scope", scope)), *(("--repo", repo) if repo else ())]
    made = ("create", "--name", name, *options, "--config", str(config))
    return apart(lambda: command(token.app, *made)).strip()


def apart(act: Callable[[], Done]) -> Done:
    with ThreadPoolExecutor(1) as other:
        return other.submit(act).result()
