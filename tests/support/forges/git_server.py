"""Serves bare repositories over smart HTTP, with access control.

server = GitServer(tmp_path, is_allowed=lambda request: request.password == "secret")
server.create("acme/app").commit("main", {"a.txt": "1"})      # an Origin, at <url>/acme/app.git
"""

import asyncio
import base64
import binascii
import gzip
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct

from mergeyard.domain.ids import Sha
from tests.support.http_server import Receive, Scope, Send, read_body, read_headers, respond
from tests.support.repositories import ENVIRONMENT, Origin

SERVICES = ("git-upload-pack", "git-receive-pack")
RefUpdates = Mapping[str, tuple[Sha | None, Sha | None]]
"""Refs, each with its old and its new value."""


class GitRequest(Struct, frozen=True):
    """A request to read a repository or to write to it."""

    repository: str
    user: str
    password: str
    is_write: bool


def ignore_push(request: GitRequest, updates: RefUpdates) -> None:
    """The default for `on_push`."""


class GitServer:
    def __init__(
        self,
        root: Path,
        is_allowed: Callable[[GitRequest], bool],
        on_push: Callable[[GitRequest, RefUpdates], None] = ignore_push,
    ) -> None:
        self.hidden_refs: list[str] = []
        """Prefixes of refs that reads do not show."""
        self.read_only_refs: list[str] = []
        """Prefixes of refs that refuse pushes."""
        self._root = root
        self._is_allowed = is_allowed
        self._on_push = on_push
        self._push_lock = asyncio.Lock()

    def create(self, repository: str) -> Origin:
        return Origin.create(self._root / f"{repository}.git")

    def origin(self, repository: str) -> Origin:
        return Origin(self._root / f"{repository}.git")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = parse_git_request(scope)
        if request is None:
            return await respond(send, 401, {"www-authenticate": 'Basic realm="git"'})
        if not (self._root / f"{request.repository}.git").is_dir():
            return await respond(send, 404, {}, b"Repository not found.")
        if not self._is_allowed(request):
            return await respond(send, 403, {}, b"Access denied.")
        body = await read_body(receive)
        if request.is_write and scope["method"] == "POST":
            return await self._push(request, scope, send, body)
        return await self._respond(request, scope, send, body)

    async def _push(self, request: GitRequest, scope: Scope, send: Send, body: bytes) -> None:
        origin = self.origin(request.repository)
        async with self._push_lock:
            before = await asyncio.to_thread(origin.refs)
            response = await asyncio.to_thread(self._run_service, request, scope, body)
            after = await asyncio.to_thread(origin.refs)
            moved = {ref for ref in {*before, *after} if before.get(ref) != after.get(ref)}
            if moved:
                await asyncio.to_thread(
                    self._on_push, request, {ref: (before.get(ref), after.get(ref)) for ref in moved}
                )
        await respond(send, *response)

    async def _respond(self, request: GitRequest, scope: Scope, send: Send, body: bytes) -> None:
        await respond(send, *await asyncio.to_thread(self._run_service, request, scope, body))

    def _run_service(self, request: GitRequest, scope: Scope, body: bytes) -> tuple[int, dict[str, str], bytes]:
        """Does what `git http-backend` does, with one process instead of three."""
        headers = read_headers(scope)
        is_advertisement = scope["path"].endswith("/info/refs")
        service = scope["query_string"].decode().partition("=")[2] if is_advertisement else scope["path"].split("/")[-1]
        if service not in SERVICES:
            return 404, {}, b""
        options = ["--stateless-rpc", *(["--advertise-refs"] if is_advertisement else [])]
        protocol = headers.get("git-protocol", "")
        out = subprocess.run(
            ["git", service.removeprefix("git-"), *options, self.origin(request.repository).path],
            input=gzip.decompress(body) if headers.get("content-encoding") == "gzip" else body,
            stdout=subprocess.PIPE,
            check=True,
            env=ENVIRONMENT | {"GIT_PROTOCOL": protocol} | self._config(),
        ).stdout
        if is_advertisement and "version=2" not in protocol:
            line = f"# service={service}\n".encode()
            out = b"%04x%b0000" % (len(line) + 4, line) + out
        kind = "advertisement" if is_advertisement else "result"
        return 200, {"content-type": f"application/x-{service}-{kind}", "cache-control": "no-cache"}, out

    def _config(self) -> dict[str, str]:
        settings = [("uploadpack.hideRefs", prefix) for prefix in self.hidden_refs]
        settings += [("receive.hideRefs", prefix) for prefix in self.read_only_refs]
        named = {f"GIT_CONFIG_KEY_{at}": key for at, (key, _) in enumerate(settings)}
        valued = {f"GIT_CONFIG_VALUE_{at}": value for at, (_, value) in enumerate(settings)}
        return {"GIT_CONFIG_COUNT": str(len(settings))} | named | valued


def parse_git_request(scope: Scope) -> GitRequest | None:
    """None without credentials."""
    kind, _, credentials = read_headers(scope).get("authorization", "").partition(" ")
    if kind.lower() != "basic":
        return None
    try:
        user, _, password = base64.b64decode(credentials, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return None
    repository = scope["path"].partition(".git/")[0].strip("/")
    writes = scope["path"].endswith("/git-receive-pack") or b"service=git-receive-pack" in scope["query_string"]
    return GitRequest(repository, user, password, writes)
