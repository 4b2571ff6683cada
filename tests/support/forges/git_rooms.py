"""Serves bare repositories over smart HTTP, as `git http-backend` does it, to those who may come in.

rooms = GitRooms(tmp_path, may=lambda visit: visit.password == "secret")
rooms.made("acme/app").commit("main", {"a.txt": "1"})      # an Origin, at <url>/acme/app.git
"""

import asyncio
import base64
import binascii
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct

from mergeyard.domain.ids import Sha
from tests.support.forges.serving import Receive, Scope, Send, answer, body_of, headers_of
from tests.support.repositories import ENVIRONMENT, Origin

Moves = Mapping[str, tuple[Sha | None, Sha | None]]
"""Refs, each with its old and its new value."""


class Visit(Struct, frozen=True):
    """Somebody wants to read a repository, or to write to it."""

    repository: str
    user: str
    password: str
    writes: bool


def unnoticed(visit: Visit, moves: Moves) -> None:
    """What becomes of pushes that nobody asked to hear of."""


class GitRooms:
    def __init__(
        self, root: Path, may: Callable[[Visit], bool], pushed: Callable[[Visit, Moves], None] = unnoticed
    ) -> None:
        self.hidden: list[str] = []
        """Prefixes of refs that are not yet visible to anybody who reads."""
        self.untouchable: list[str] = []
        """Prefixes of refs that nobody may push to."""
        self._root = root
        self._may = may
        self._pushed = pushed
        self._one_push_at_a_time = asyncio.Lock()

    def made(self, repository: str) -> Origin:
        return Origin.made(self._root / f"{repository}.git")

    def origin(self, repository: str) -> Origin:
        return Origin(self._root / f"{repository}.git")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        visit = visit_of(scope)
        if visit is None:
            return await answer(send, 401, {"www-authenticate": 'Basic realm="git"'})
        if not (self._root / f"{visit.repository}.git").is_dir():
            return await answer(send, 404, {}, b"Repository not found.")
        if not self._may(visit):
            return await answer(send, 403, {}, b"You may not do that here.")
        body = await body_of(receive)
        if visit.writes and scope["method"] == "POST":
            return await self._push(visit, scope, send, body)
        return await self._backend(visit, scope, send, body)

    async def _push(self, visit: Visit, scope: Scope, send: Send, body: bytes) -> None:
        origin = self.origin(visit.repository)
        async with self._one_push_at_a_time:
            before = await asyncio.to_thread(origin.refs)
            reply = await asyncio.to_thread(self._ask, visit, scope, body)
            after = await asyncio.to_thread(origin.refs)
            moved = {ref for ref in {*before, *after} if before.get(ref) != after.get(ref)}
            if moved:
                await asyncio.to_thread(self._pushed, visit, {ref: (before.get(ref), after.get(ref)) for ref in moved})
        await answer(send, *reply)

    async def _backend(self, visit: Visit, scope: Scope, send: Send, body: bytes) -> None:
        await answer(send, *await asyncio.to_thread(self._ask, visit, scope, body))

    def _ask(self, visit: Visit, scope: Scope, body: bytes) -> tuple[int, dict[str, str], bytes]:
        environment = surroundings(self._root, visit, scope, len(body)) | self._config()
        command = ["git", "http-backend"]
        out = subprocess.run(command, input=body, stdout=subprocess.PIPE, check=True, env=environment).stdout
        head, _, content = out.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode("latin-1").split("\r\n"))
        return int(headers.pop("Status", "200").split(" ")[0]), headers, content

    def _config(self) -> dict[str, str]:
        settings = [("uploadpack.hideRefs", prefix) for prefix in self.hidden]
        settings += [("receive.hideRefs", prefix) for prefix in self.untouchable]
        named = {f"GIT_CONFIG_KEY_{at}": key for at, (key, _) in enumerate(settings)}
        valued = {f"GIT_CONFIG_VALUE_{at}": value for at, (_, value) in enumerate(settings)}
        return {"GIT_CONFIG_COUNT": str(len(settings))} | named | valued


def visit_of(scope: Scope) -> Visit | None:
    """None: nobody said who they are."""
    kind, _, proof = headers_of(scope).get("authorization", "").partition(" ")
    if kind.lower() != "basic":
        return None
    try:
        user, _, password = base64.b64decode(proof, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return None
    repository = scope["path"].partition(".git/")[0].strip("/")
    writes = scope["path"].endswith("/git-receive-pack") or b"service=git-receive-pack" in scope["query_string"]
    return Visit(repository, user, password, writes)


def surroundings(root: Path, visit: Visit, scope: Scope, length: int) -> dict[str, str]:
    headers = headers_of(scope)
    return ENVIRONMENT | {
        "GIT_HTTP_EXPORT_ALL": "1",
        "GIT_PROJECT_ROOT": os.fspath(root),
        "GIT_PROTOCOL": headers.get("git-protocol", ""),
        "HTTP_CONTENT_ENCODING": headers.get("content-encoding", ""),
        "REMOTE_USER": visit.user or "somebody",
        "REMOTE_ADDR": "127.0.0.1",
        "REQUEST_METHOD": scope["method"],
        "PATH_INFO": scope["path"],
        "QUERY_STRING": scope["query_string"].decode(),
        "CONTENT_TYPE": headers.get("content-type", ""),
        "CONTENT_LENGTH": str(length),
    }
