"""Reads pull requests of a plain Git repository from their refs and metadata."""

import asyncio
import re
from asyncio import Future, IncompleteReadError, Queue
from asyncio.subprocess import Process
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

import msgspec
from msgspec import Struct

from mergeyard.adapters.host_plain.process import GitFailed, kill_and_wait, run_git, start_git
from mergeyard.domain import ids
from mergeyard.domain.ids import PullRequestNumber, Sha
from mergeyard.domain.pull_requests import HeadBranchAccess, PullRequest
from mergeyard.ports.forge import OpenPullRequest, PullRequestText, UnexpectedHostResponse

MAX_METADATA_BYTES = 64 * 1024


class InvalidMetadata(Exception):
    """This is not valid metadata of a pull request; the message says why."""


class StoredState(StrEnum):
    OPEN = "open"
    CLOSED = "closed"
    MERGED = "merged"


class PullRequestMetadata(Struct, frozen=True, kw_only=True):
    title: str = ""
    author: str = ""
    base: str
    branch: str = ""
    draft: bool = False
    state: StoredState = StoredState.OPEN


def decode_metadata(raw: bytes) -> PullRequestMetadata:
    """Requires UTF-8 also in unknown members, because `encode_metadata` writes them again."""
    try:
        return msgspec.json.decode(raw.decode(), type=PullRequestMetadata)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidMetadata(str(error)) from error


def encode_metadata(meta: PullRequestMetadata, previous: bytes = b"{}") -> bytes:
    """Keeps the unknown members of the previous metadata."""
    others = msgspec.json.decode(previous, type=dict[str, msgspec.Raw])
    try:
        raw = msgspec.json.encode(others | msgspec.to_builtins(meta))
    except UnicodeEncodeError as error:
        raise InvalidMetadata("title, author and branches must be text in UTF-8") from error
    if len(raw) > MAX_METADATA_BYTES:
        raise InvalidMetadata(
            f"the metadata (title, author, …) has {len(raw)} bytes, but at most {MAX_METADATA_BYTES} are allowed"
        )
    return raw


def find_differing_lines(before: bytes, now: bytes) -> tuple[list[bytes], list[bytes]]:
    """The lines between the first and the last difference, of both texts."""
    begin = before.rfind(b"\n", 0, _common_prefix_length(before, now)) + 1
    before, now = before[begin:], now[begin:]
    common = _common_prefix_length(before[::-1], now[::-1])
    end = before.find(b"\n", len(before) - common)
    suffix = 0 if end < 0 else len(before) - end
    return before[: len(before) - suffix].split(b"\n"), now[: len(now) - suffix].split(b"\n")


def _common_prefix_length(one: bytes, other: bytes) -> int:
    """By bisection, because comparing slices is much faster than comparing bytes in a loop."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


PULL_REFS_PREFIX = "refs/pull/"
PULL_REF_SEPARATOR = f" {PULL_REFS_PREFIX}".encode()
HEAD_REF_PATTERN = "refs/pull/*/head"
META_REF_PATTERN = "refs/pull/*/meta"
SYMREF_ARROW = b" -> "
REF_FORMAT = f"%(objectname) %(refname)%(if)%(symref)%(then){SYMREF_ARROW.decode()}%(symref)%(end)"
PULL_REF_PATTERN = re.compile(r"refs/pull/([1-9][0-9]{0,9})/(?:head|meta)")
MAX_NUMBER = 2**31 - 1


def head_ref(number: PullRequestNumber) -> str:
    return f"{PULL_REFS_PREFIX}{number}/head"


def meta_ref(number: PullRequestNumber) -> str:
    return f"{PULL_REFS_PREFIX}{number}/meta"


def pull_request_number_of(ref: str) -> PullRequestNumber | None:
    match = PULL_REF_PATTERN.fullmatch(ref)
    return PullRequestNumber(int(match[1])) if match and int(match[1]) <= MAX_NUMBER else None


async def list_refs(folder: Path, *prefixes: str) -> Mapping[str, Sha]:
    """A prefix matches whole components: `refs/pull/1` does not match `refs/pull/12/head`."""
    return _parse_lines((await _run_for_each_ref(folder, *prefixes)).split(b"\n"))


class RefList(Struct, frozen=True):
    """The relevant refs, and the output of git that they were parsed from."""

    output: bytes = b""
    refs: Mapping[str, Sha] = {}

    @property
    def symref_targets(self) -> Iterator[str]:
        """The refs that symbolic refs in the list point to."""
        _, *parts = self.output.split(SYMREF_ARROW)
        return (part.partition(b"\n")[0].decode(errors="backslashreplace") for part in parts)

    async def refresh(self, folder: Path) -> "RefList":
        """Reads the refs. Returns the same object if nothing changed, which is the usual case."""
        output = await _run_for_each_ref(folder, "refs/heads", "refs/pull")
        return self if output == self.output else RefList(output, self._parse_changes(output))

    def _parse_changes(self, output: bytes) -> Mapping[str, Sha]:
        """Parses only the differing lines, because most refs do not change."""
        refs = dict(self.refs)
        for before, now in zip(_split_at_pull_refs(self.output), _split_at_pull_refs(output), strict=True):
            removed, added = map(_parse_lines, find_differing_lines(before, now))
            for ref in removed.keys() - added.keys():
                refs.pop(ref, None)
            refs.update((ref, sha) for ref, sha in added.items() if is_relevant_ref(ref))
        return refs


async def _run_for_each_ref(folder: Path, *prefixes: str) -> bytes:
    return await run_git(folder, "for-each-ref", f"--format={REF_FORMAT}", "--end-of-options", *prefixes)


def _split_at_pull_refs(output: bytes) -> tuple[bytes, bytes]:
    """Branches and pull request refs are compared separately: a change in each would otherwise make all lines between
    them part of the difference."""
    first = output.find(PULL_REF_SEPARATOR)
    position = len(output) if first < 0 else output.rfind(b"\n", 0, first) + 1
    return output[:position], output[position:]


def _parse_lines(lines: Iterable[bytes]) -> Mapping[str, Sha]:
    # A ref name contains no backslash, so escaped names that are not UTF-8 stay distinct.
    parts = (line.decode(errors="backslashreplace").split(" ", 2) for line in lines if line)
    return {ref: Sha(sha) for sha, ref, *_ in parts}


def is_relevant_ref(ref: str) -> bool:
    if ref.startswith(PULL_REFS_PREFIX):
        return pull_request_number_of(ref) is not None
    return not ref.startswith(f"refs/heads/{ids.TEST_BRANCH_PREFIX}")


RESPONSE_TIMEOUT_S = 10
EXIT_TIMEOUT_S = 2
MAX_CACHED_OBJECT_BYTES, MAX_CACHED_OBJECTS = 1024, 2000
Response = TypeVar("Response")


class ReaderExited(GitFailed):
    """The process has ended or hangs; a new one can succeed."""


class ObjectInfo(NamedTuple):
    sha: Sha
    kind: str
    size: int


class PendingRequest(NamedTuple):
    read_response: Callable[[], Awaitable[Any]]
    response: Future[Any]


class ObjectReader:
    """Supports concurrent requests: git answers in the order in which they are written."""

    def __init__(self, folder: Path, process: Process) -> None:
        assert process.stdin
        assert process.stdout
        self.is_open = True
        self._folder = folder
        self._process = process
        self._stdin = process.stdin
        self._stdout = process.stdout
        self._unsent: list[str] = []
        self._requests = Queue[PendingRequest | None]()
        self._cache: dict[Sha, bytes] = {}
        self._reading = asyncio.create_task(self._read_responses())

    @classmethod
    async def start(cls, folder: Path) -> Self:
        return cls(folder, await start_git(folder, "cat-file", "--batch-command", "--buffer"))

    async def read_info(self, *names: str) -> list[ObjectInfo | None]:
        """None if there is no such name, or if its object is missing."""

        async def receive_headers() -> list[ObjectInfo | None]:
            return [await self._read_header() for _ in names]

        return await self._request("".join(f"info {name}\n" for name in names), receive_headers)

    async def read_content(self, sha: Sha) -> bytes | None:
        """Small objects are cached: an object never changes."""

        async def receive_content() -> bytes | None:
            header = await self._read_header()
            return header and (await self._stdout.readexactly(header.size + 1))[:-1]

        cached = self._cache.get(sha)
        if cached is not None:
            return cached
        return self._cache_small(sha, await self._request(f"contents {sha}\n", receive_content))

    def _cache_small(self, sha: Sha, content: bytes | None) -> bytes | None:
        if content is not None and len(content) <= MAX_CACHED_OBJECT_BYTES:
            if len(self._cache) == MAX_CACHED_OBJECTS:
                self._cache.clear()
            self._cache[sha] = content
        return content

    async def close(self) -> None:
        """Pending requests are still answered."""
        self.is_open = False
        self._send()
        self._stdin.close()
        self._requests.put_nowait(None)
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._reading), EXIT_TIMEOUT_S)
            await asyncio.wait_for(self._process.wait(), EXIT_TIMEOUT_S)
        await kill_and_wait(self._process)
        await self._reading

    async def _request(self, commands: str, read_response: Callable[[], Awaitable[Response]]) -> Response:
        if not self.is_open:
            raise self._ended_error()
        loop = asyncio.get_running_loop()
        response: Future[Response] = loop.create_future()
        self._requests.put_nowait(PendingRequest(read_response, response))
        if not self._unsent:
            loop.call_soon(self._send)
        self._unsent.append(commands)
        timer = loop.call_later(RESPONSE_TIMEOUT_S, self._kill)
        try:
            return await response
        finally:
            timer.cancel()

    def _kill(self) -> None:
        """Ends the output, so that all pending requests fail. A timer costs a tenth of `asyncio.timeout`."""
        with suppress(ProcessLookupError):
            self._process.kill()

    def _send(self) -> None:
        """Sends all requests of one event loop iteration together: waking git is the expensive part."""
        if not self._unsent:
            return
        commands = "".join([*self._unsent, "flush\n"])
        self._unsent.clear()
        with suppress(RuntimeError):  # raised by uvloop when git has ended, which reading detects
            self._stdin.write(commands.encode())

    async def _read_responses(self) -> None:
        # A request whose caller was cancelled is read as well: the next response follows it in the output.
        pending: PendingRequest | None = None
        with suppress(IncompleteReadError, ConnectionError, ValueError):
            while pending := await self._requests.get():
                response = await pending.read_response()
                if not pending.response.done():
                    pending.response.set_result(response)
        self.is_open = False
        while pending or not self._requests.empty():
            if pending and not pending.response.done():
                pending.response.set_exception(self._ended_error())
            pending = None if self._requests.empty() else self._requests.get_nowait()

    async def _read_header(self) -> ObjectInfo | None:
        line = (await self._stdout.readuntil()).decode()
        if line.endswith(" missing\n"):
            return None
        sha, kind, size = line.split()
        return ObjectInfo(Sha(sha), kind, int(size))

    def _ended_error(self) -> ReaderExited:
        return ReaderExited(f"git ended while it read {self._folder}")


class StoredPullRequest(Struct, frozen=True, kw_only=True):
    number: PullRequestNumber
    head: Sha
    blob: Sha
    """The object with the metadata."""
    raw: bytes
    meta: PullRequestMetadata


async def read_stored_pull_request(reader: ObjectReader, number: PullRequestNumber) -> StoredPullRequest | None:
    """None if one of the two refs or its object is missing."""
    head, blob = await reader.read_info(head_ref(number), meta_ref(number))
    if head is None or blob is None:
        return None
    require_type(head, "commit", head_ref(number))
    require_type(blob, "blob", meta_ref(number))
    if blob.size > MAX_METADATA_BYTES:
        raise UnexpectedHostResponse(
            f"{meta_ref(number)} has {blob.size} bytes, but at most {MAX_METADATA_BYTES} are allowed"
        )
    raw = await reader.read_content(blob.sha)
    if raw is None:
        raise UnexpectedHostResponse(f"{meta_ref(number)} cannot be read")
    try:
        return StoredPullRequest(number=number, head=head.sha, blob=blob.sha, raw=raw, meta=decode_metadata(raw))
    except InvalidMetadata as error:
        raise UnexpectedHostResponse(f"{meta_ref(number)} is not valid metadata of a pull request: {error}") from error


def require_type(found: ObjectInfo, kind: str, ref: str) -> None:
    if found.kind != kind:
        raise UnexpectedHostResponse(f"{ref} is a {found.kind}, not a {kind}")


BRANCH_PATTERN = re.compile(r"[^\x00-\x20\x7f~^:?*\[\\\ud800-\udfff]{1,1000}")
OTHER_REVISION_PATTERN = re.compile(r"@\{|-g[0-9a-f]+\Z")
"""Part of a name that git can also parse as something else than the name of a ref: `x@{1}`, `x-g1234`."""


async def judge_head_branch(reader: ObjectReader, stored: StoredPullRequest, current: str) -> HeadBranchAccess:
    """By the repository itself, without other pull requests. `current` is the branch that HEAD names: the default
    branch, or in a checkout the one that git lets no push change."""
    branch = stored.meta.branch
    if not BRANCH_PATTERN.fullmatch(branch) or OTHER_REVISION_PATTERN.search(branch):
        return HeadBranchAccess.GONE
    if branch in (stored.meta.base, current):
        return HeadBranchAccess.SHARED
    (tip,) = await reader.read_info(f"refs/heads/{branch}")
    return HeadBranchAccess.MOVABLE if tip is not None and tip.sha == stored.head else HeadBranchAccess.GONE


def is_open(stored: StoredPullRequest) -> bool:
    return stored.meta.state is StoredState.OPEN


def to_pull_request(stored: StoredPullRequest, access: HeadBranchAccess) -> PullRequest:
    meta = stored.meta
    return PullRequest(
        number=stored.number,
        head=stored.head,
        base_branch=meta.base,
        head_branch=meta.branch,
        head_branch_access=access,
        title=meta.title,
        author=meta.author,
        is_open=is_open(stored),
        draft=meta.draft,
        merged_into=meta.base if meta.state is StoredState.MERGED else None,
    )


def to_open_pull_request(stored: StoredPullRequest) -> OpenPullRequest:
    meta = stored.meta
    return OpenPullRequest(
        number=stored.number,
        title=meta.title,
        author=meta.author,
        head=stored.head,
        head_branch=meta.branch,
        draft=meta.draft,
    )


AUTHOR_PATTERN = re.compile(r"([^<>]+) <([^<> ]+)>")


def to_text(stored: StoredPullRequest) -> PullRequestText:
    """The metadata has no body. Its author is a name, or a name and an address: `Ada <ada@example.org>`."""
    match = AUTHOR_PATTERN.fullmatch(stored.meta.author)
    name, address = match.groups() if match else (stored.meta.author, "")
    return PullRequestText(title=stored.meta.title, author_name=name.strip(), author_email=address)
