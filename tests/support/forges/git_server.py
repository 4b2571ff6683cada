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
from msgspec.structs import replace

from mergeyard.domain.ids import SHA1, ObjectFormat, Sha
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


class PushRefusal(Struct, frozen=True):
    """Why the server refuses the update of one ref."""

    reason: str
    """In the result of the ref: `! [remote rejected] main -> main (reason)`."""
    lines: list[str]
    """Shown as `remote: ...`."""


class Push(Struct, frozen=True):
    """A request of `git push`: the updates, then a pack with the new objects."""

    updates: RefUpdates
    pack: bytes


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
        self.refuse_push: Callable[[GitRequest, RefUpdates, Callable[[], None]], Mapping[str, PushRefusal]] | None = (
            None
        )
        """Refuses updates of refs. One refused ref refuses the whole push, as with `git push --atomic`. The last
        argument stores the pushed objects, so that they can be read before any ref is updated."""
        self.ignores_case = False
        """Whether requests can spell a name in any way; the repository is then created in lower case."""
        self.moved: dict[str, str] = {}
        """Former names of repositories, each with the present one. A request with a former name is redirected."""
        self._root = root
        self._is_allowed = is_allowed
        self._on_push = on_push
        self._push_lock = asyncio.Lock()

    def create(self, repository: str, object_format: ObjectFormat = SHA1) -> Origin:
        self.moved.pop(repository, None)
        return Origin.create(self._root / f"{repository}.git", object_format)

    def origin(self, repository: str) -> Origin:
        return Origin(self._root / f"{repository}.git")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = parse_git_request(scope)
        if request is None:
            return await respond(send, 401, {"www-authenticate": 'Basic realm="git"'})
        if self.ignores_case:
            request = replace(request, repository=request.repository.lower())
        if request.repository in self.moved:
            return await respond(send, 301, {"location": self._build_location(scope, request.repository)})
        if not (self._root / f"{request.repository}.git").is_dir():
            return await respond(send, 404, {}, b"Repository not found.")
        if not self._is_allowed(request):
            return await respond(send, 403, {}, b"Access denied.")
        body = await read_body(receive)
        if request.is_write and scope["method"] == "POST":
            return await self._push(request, scope, send, body)
        return await self._respond(request, scope, send, body)

    def rename(self, old: str, new: str) -> Origin:
        """The old name redirects to the new one."""
        (self._root / f"{new}.git").parent.mkdir(parents=True, exist_ok=True)
        (self._root / f"{old}.git").rename(self._root / f"{new}.git")
        self.moved = {name: new if to == old else to for name, to in self.moved.items()} | {old: new}
        self.moved.pop(new, None)
        return self.origin(new)

    def _build_location(self, scope: Scope, repository: str) -> str:
        below, query = scope["path"].partition(".git/")[2], scope["query_string"].decode()
        address = f"http://{read_headers(scope)['host']}/{self.moved[repository]}.git/{below}"
        return address + (f"?{query}" if query else "")

    async def _push(self, request: GitRequest, scope: Scope, send: Send, body: bytes) -> None:
        origin = self.origin(request.repository)
        async with self._push_lock:
            refusal = await asyncio.to_thread(self._find_refusal, request, scope, body)
            if refusal is not None:
                content_type = {"content-type": "application/x-git-receive-pack-result"}
                return await respond(send, 200, content_type, refusal)
            before = await asyncio.to_thread(origin.refs)
            response = await asyncio.to_thread(self._run_service, request, scope, body)
            after = await asyncio.to_thread(origin.refs)
            moved = sorted(ref for ref in {*before, *after} if before.get(ref) != after.get(ref))
            if moved:
                await asyncio.to_thread(
                    self._on_push, request, {ref: (before.get(ref), after.get(ref)) for ref in moved}
                )
        return await respond(send, *response)

    def _find_refusal(self, request: GitRequest, scope: Scope, body: bytes) -> bytes | None:
        """The response to a push that the server refuses."""
        if self.refuse_push is None:
            return None
        origin, push = self.origin(request.repository), parse_push(decompress(scope, body))
        refused = self.refuse_push(request, push.updates, lambda: store_pack(origin, push.pack))
        return encode_refusal(push.updates, refused) if refused else None

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
            input=decompress(scope, body),
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


def decompress(scope: Scope, body: bytes) -> bytes:
    return gzip.decompress(body) if read_headers(scope).get("content-encoding") == "gzip" else body


def parse_push(body: bytes) -> Push:
    """Each packet starts with its length in hexadecimal; 0000 ends the updates."""
    updates, at = dict[str, tuple[Sha | None, Sha | None]](), 0
    while (length := int(body[at : at + 4], 16)) > 0:
        old, new, ref = body[at + 4 : at + length].partition(b"\0")[0].decode().strip().split(" ", 2)
        updates[ref] = (to_tip(old), to_tip(new))
        at += length
    return Push(updates, body[at + 4 :])


def to_tip(sha: str) -> Sha | None:
    return Sha(sha) if sha.strip("0") else None


def store_pack(origin: Origin, pack: bytes) -> None:
    """There is no pack if all updates are deletions."""
    if pack.startswith(b"PACK"):
        origin.run("unpack-objects", "-q", stdin=pack)


def encode_refusal(updates: RefUpdates, refused: Mapping[str, PushRefusal]) -> bytes:
    """Messages for the user in side band 2, then the results of the refs in side band 1."""
    lines = [line for refusal in refused.values() for line in refusal.lines]
    reasons = {ref: refused[ref].reason if ref in refused else "atomic push failure" for ref in updates}
    results = [b"unpack ok\n", *(f"ng {ref} {reason}\n".encode() for ref, reason in reasons.items())]
    report = b"".join(map(encode_packet, results)) + b"0000"
    messages = [encode_packet(b"\x02" + f"{line}\n".encode()) for line in lines]
    return b"".join([*messages, encode_packet(b"\x01" + report), b"0000"])


def encode_packet(content: bytes) -> bytes:
    return b"%04x%b" % (len(content) + 4, content)
