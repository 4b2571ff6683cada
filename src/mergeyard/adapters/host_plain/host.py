"""Bare repositories as an implementation of the port `Host`."""

import asyncio
import os
import re
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from mergeyard.adapters.host_plain import pull_requests
from mergeyard.adapters.host_plain.editor import retry_on_conflict, update_pull_request_refs
from mergeyard.adapters.host_plain.pull_requests import (
    InvalidMetadata,
    ObjectReader,
    ReaderExited,
    StoredPullRequest,
    StoredState,
    is_open,
    judge_head_branch,
    list_refs,
    pull_request_number_of,
    read_stored_pull_request,
    to_open_pull_request,
    to_pull_request,
    to_text,
)
from mergeyard.adapters.host_plain.ref_watch import RefWatch
from mergeyard.domain.config import Config
from mergeyard.domain.ids import PullRequestNumber, Repo, Sha
from mergeyard.domain.pull_requests import HeadBranchAccess, PullRequest
from mergeyard.ports.forge import (
    MAX_LISTED,
    ChecksFrom,
    HostUnavailable,
    OpenPullRequest,
    PullRequestText,
    UnexpectedHostResponse,
    select_newest,
)
from mergeyard.ports.git import Remote

Found = TypeVar("Found")

NAME_PATTERN = re.compile(r"(?!-)(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,100}")


@lru_cache(maxsize=1024)
def repository_folder(root: Path, repo: Repo) -> Path:
    """Cached, because every request needs it and creating paths is slow."""
    if not (NAME_PATTERN.fullmatch(repo.owner) and NAME_PATTERN.fullmatch(repo.name)):
        raise HostUnavailable(f"{repo} is not a valid repository name on this Git host")
    return root / repo.owner / f"{repo.name}.git"


def is_repository(folder: Path) -> bool:
    return (folder / "HEAD").is_file() and (folder / "objects").is_dir() and (folder / "refs").is_dir()


def find_repository(path: Path) -> Path | None:
    """The bare repository at the path, or the `.git` folder of the checkout at the path."""
    candidates = (path.absolute(), path.absolute() / ".git")
    return next((candidate for candidate in candidates if is_repository(candidate)), None)


class CachedReader(Struct, frozen=True):
    reader: ObjectReader
    identity: tuple[int, int]
    """Identifies the repository that it reads, in case another one is created at the same path."""


class ObjectReaderCache:
    def __init__(self, max_readers: int = 64) -> None:
        self._max_readers = max_readers
        self._cached: dict[Path, CachedReader] = {}
        """Ordered by last use, most recent last."""
        self._starting = asyncio.Lock()

    async def get(self, folder: Path) -> ObjectReader:
        identity = read_identity(folder)
        return self._find_cached(folder, identity) or await self._start(folder, identity)

    async def close(self) -> None:
        async with self._starting:
            while self._cached:
                await self._evict(next(iter(self._cached)))

    def _find_cached(self, folder: Path, identity: tuple[int, int]) -> ObjectReader | None:
        cached = self._cached.get(folder)
        if not cached or cached.identity != identity or not cached.reader.is_open:
            return None
        self._cached[folder] = self._cached.pop(folder)
        return cached.reader

    async def _start(self, folder: Path, identity: tuple[int, int]) -> ObjectReader:
        async with self._starting:
            if reader := self._find_cached(folder, identity):
                return reader
            if folder in self._cached:
                await self._evict(folder)
            while len(self._cached) >= self._max_readers:
                await self._evict(next(iter(self._cached)))
            reader = await ObjectReader.start(folder)
            self._cached[folder] = CachedReader(reader, identity)
            return reader

    async def _evict(self, folder: Path) -> None:
        await self._cached.pop(folder).reader.close()


def read_identity(folder: Path) -> tuple[int, int]:
    """Inode and modification time of HEAD. The inode of the folder alone can be reused by a new repository."""
    try:
        stat = os.stat(f"{folder}/HEAD")
    except OSError:
        raise HostUnavailable(f"there is no repository at {folder}") from None
    return stat.st_ino, stat.st_mtime_ns


def read_current(folder: Path) -> str:
    """The branch that HEAD names; empty if it names none."""
    try:
        head = (folder / "HEAD").read_text(errors="replace")
    except OSError:
        raise HostUnavailable(f"there is no repository at {folder}") from None
    return head.removeprefix("ref: refs/heads/").strip()


POLL_INTERVAL_MS = 0
"""No minimum: a look at unchanged refs costs next to nothing."""
MAX_CONCURRENT_SCANS = 2
SCAN_TIMEOUT_S = 30
"""A file system that takes longer does not respond."""
MAX_CONCURRENT_REF_CHECKS = 4
"""Each check of a missing pull request starts a git process."""

MAX_SEARCHED = 5000
"""Of the numbers of a repository, so many of the newest are searched for open pull requests."""


class PlainHost:
    def __init__(
        self, name: str, root: Path, checks_from: ChecksFrom, now_ns: Callable[[], int] = time.time_ns
    ) -> None:
        self.name = name
        self.checks_from = checks_from
        self.provider = "git"
        self.has_groups = False
        self.number_prefix = "#"
        self.forge = None
        self.poll_interval_ms = POLL_INTERVAL_MS
        self.reports_mergeability = False
        self.moves_heads_first = False
        self.head_ref_pattern = pull_requests.HEAD_REF_PATTERN
        self._root = root.absolute()
        self._readers = ObjectReaderCache()
        self._now_ns = now_ns
        self._watches: dict[Repo, RefWatch] = {}
        self._scan_threads = ThreadPoolExecutor(MAX_CONCURRENT_SCANS, "plain-host")
        """Its own, so that a file system that does not respond blocks no other part of the server."""
        self._ref_checks = asyncio.Semaphore(MAX_CONCURRENT_REF_CHECKS)
        self._head_branches: dict[Repo, HeadBranches] = {}

    def canonical_repo(self, repo: Repo) -> Repo:
        return repo

    def unsupported_reason(self, config: Config) -> None:
        """All methods are supported: any commit can be pushed, and the metadata marks the pull request as merged."""

    async def own_address(self, repo: Repo) -> str | None:  # noqa: ARG002
        """There are no accounts."""
        return None

    async def remote(self, repo: Repo) -> Remote:
        return Remote(str(repository_folder(self._root, repo)))

    def head_ref(self, number: PullRequestNumber) -> str:
        return pull_requests.head_ref(number)

    def pull_request_number_of(self, ref: str) -> PullRequestNumber | None:
        return pull_requests.pull_request_number_of(ref)

    def pull_request_url(self, repo: Repo, number: PullRequestNumber) -> str | None:  # noqa: ARG002
        return None

    async def has_repository(self, repo: Repo) -> bool:
        try:
            return is_repository(repository_folder(self._root, repo))
        except HostUnavailable:
            return False

    async def read_pull_request(
        self, repo: Repo, number: PullRequestNumber, *, with_requirements: bool = True, with_head_branch: bool = True
    ) -> PullRequest | None:
        folder = repository_folder(self._root, repo)
        stored = await self._read_stored(folder, number)
        if stored is None:
            return None
        if not is_open(stored):
            return to_pull_request(stored, HeadBranchAccess.GONE)
        if not (with_requirements and with_head_branch):
            return to_pull_request(stored, HeadBranchAccess.MOVABLE)
        return to_pull_request(stored, await self._judge_head_branch(repo, folder, stored))

    async def _judge_head_branch(self, repo: Repo, folder: Path, stored: StoredPullRequest) -> HeadBranchAccess:
        access = await self._with_reader(folder, lambda reader: judge_head_branch(reader, stored, read_current(folder)))
        if access is not HeadBranchAccess.MOVABLE:
            return access
        branches = self._head_branches.setdefault(repo, HeadBranches(lambda: self._list_metadata(folder)))
        numbers = await self._with_reader(folder, lambda reader: branches.find_open(reader, stored.meta.branch))
        return HeadBranchAccess.SHARED if numbers - {stored.number} else access

    async def read_text(self, repo: Repo, number: PullRequestNumber) -> PullRequestText | None:
        stored = await self._read_stored(repository_folder(self._root, repo), number)
        return stored and to_text(stored)

    async def branch_tip(self, repo: Repo, branch: str) -> Sha | None:
        folder, ref = repository_folder(self._root, repo), f"refs/heads/{branch}"
        read_identity(folder)
        async with self._ref_checks:
            return (await list_refs(folder, ref)).get(ref)

    async def open_pull_requests(self, repo: Repo, branch: str) -> Sequence[OpenPullRequest]:
        """Lists the refs by itself: `refs` would hide changes from the poller, which compares two reads of it."""
        folder = repository_folder(self._root, repo)
        numbers = list(await self._list_metadata(folder))
        found = list[OpenPullRequest]()
        for start in range(0, len(numbers), MAX_LISTED):
            chunk = numbers[start : start + MAX_LISTED]
            read = await self._with_reader(folder, lambda reader, chunk=chunk: _read_all(reader, chunk))
            found += [to_open_pull_request(each) for each in read if is_open(each) and each.meta.base == branch]
            if len(found) >= MAX_LISTED:
                break
        return select_newest(found)

    async def _list_metadata(self, folder: Path) -> Mapping[PullRequestNumber, Sha]:
        """The objects with the metadata of the newest pull requests, newest first."""
        read_identity(folder)
        async with self._ref_checks:
            refs = await list_refs(folder, pull_requests.META_REF_PATTERN)
        blobs = {number: blob for ref, blob in refs.items() if (number := pull_request_number_of(ref))}
        return {number: blobs[number] for number in sorted(blobs, reverse=True)[:MAX_SEARCHED]}

    async def required_statuses(self, repo: Repo, branch: str) -> tuple[str, ...]:  # noqa: ARG002
        return ()

    async def refs(self, repo: Repo, branches: Collection[str] = ()) -> Mapping[str, Sha]:  # noqa: ARG002
        watch = self._watches.get(repo)
        if watch is None:
            watch = self._watches[repo] = RefWatch(repository_folder(self._root, repo), self._now_ns)
        return await watch.read(await self._in_thread(watch.scan))

    async def find_changed(self, repos: Mapping[Repo, Collection[PullRequestNumber]]) -> Collection[Repo]:
        watched = [(repo, self._watches.get(repo), numbers) for repo, numbers in repos.items()]

        def find() -> list[Repo]:
            return [repo for repo, watch, numbers in watched if watch is None or not watch.is_unchanged(numbers)]

        return await self._in_thread(find)

    async def mark_merged(self, repo: Repo, number: PullRequestNumber, head: Sha, commit: Sha) -> bool:
        """Does nothing if the author pushed: the new commits did not land, so the pull request stays open. Its head is
        the landed commit if a user updated it after the queue moved its branch."""
        folder = repository_folder(self._root, repo)

        async def mark() -> bool:
            stored = await self._read_stored(folder, number)
            if stored and stored.head in (head, commit) and stored.meta.state is not StoredState.MERGED:
                await update_pull_request_refs(folder, stored, replace(stored.meta, state=StoredState.MERGED))
                return True
            return stored is None or stored.meta.state is StoredState.MERGED

        try:
            return await retry_on_conflict(mark)
        except InvalidMetadata as error:
            raise HostUnavailable(
                f"{pull_requests.meta_ref(number)} of {repo} cannot be marked as merged: {error}"
            ) from error

    async def close(self) -> None:
        self._scan_threads.shutdown(wait=False)
        await self._readers.close()

    async def _in_thread(self, work: Callable[[], Found]) -> Found:
        result = asyncio.get_running_loop().run_in_executor(self._scan_threads, work)
        try:
            async with asyncio.timeout(SCAN_TIMEOUT_S):
                return await result
        except TimeoutError:
            raise HostUnavailable(f"{self._root} does not respond. Check the disk or the network mount.") from None

    async def _read_stored(self, folder: Path, number: PullRequestNumber) -> StoredPullRequest | None:
        stored = await self._with_reader(folder, lambda reader: read_stored_pull_request(reader, number))
        if stored is None:
            await self._ensure_missing(folder, number)
        return stored

    async def _with_reader(self, folder: Path, read: Callable[[ObjectReader], Awaitable[Found]]) -> Found:
        """Tries once more with a new reader, if the process of the cached one has ended. A reader does not show why: a
        command in between does, if git cannot read the repository at all."""
        try:
            return await read(await self._readers.get(folder))
        except ReaderExited:
            async with self._ref_checks:
                await list_refs(folder, pull_requests.PULL_REFS_PREFIX.rstrip("/"))
            return await read(await self._readers.get(folder))

    async def _ensure_missing(self, folder: Path, number: PullRequestNumber) -> None:
        """The reader reports the same for a missing ref, a missing object and a broken repository."""
        async with self._ref_checks:
            present = await pull_requests.list_refs(folder, f"{pull_requests.PULL_REFS_PREFIX}{number}")
        if {pull_requests.head_ref(number), pull_requests.meta_ref(number)} <= present.keys():
            raise HostUnavailable(f"{pull_requests.PULL_REFS_PREFIX}{number} exists, but could not be read")


async def _read_all(reader: ObjectReader, numbers: Sequence[PullRequestNumber]) -> list[StoredPullRequest]:
    """One that cannot be read is left out, so that it does not hide others."""
    read = await asyncio.gather(
        *(read_stored_pull_request(reader, number) for number in numbers), return_exceptions=True
    )
    found = list[StoredPullRequest]()
    for stored in read:
        if isinstance(stored, BaseException) and not isinstance(stored, UnexpectedHostResponse):
            raise stored
        if isinstance(stored, StoredPullRequest):
            found.append(stored)
    return found


class KnownMetadata(NamedTuple):
    blob: Sha
    open_branch: str
    """The head branch; empty if the pull request is not open."""


class HeadBranches:
    """The head branches of the pull requests of a repository. Metadata is read again only after it changed."""

    def __init__(self, list_metadata: Callable[[], Awaitable[Mapping[PullRequestNumber, Sha]]]) -> None:
        self._list_metadata = list_metadata
        self._known: Mapping[PullRequestNumber, KnownMetadata] = {}
        self._lists_begun = 0
        self._known_list = 0
        """The number of the list that `_known` is from."""
        self._lock = asyncio.Lock()

    async def find_open(self, reader: ObjectReader, branch: str) -> set[PullRequestNumber]:
        """The open pull requests from this branch, by a list that began after the call: concurrent calls share one."""
        needed = self._lists_begun + 1
        async with self._lock:
            if self._known_list < needed:
                self._lists_begun += 1
                self._known = await self._refresh(reader)
                self._known_list = self._lists_begun
            return {number for number, each in self._known.items() if each.open_branch == branch}

    async def _refresh(self, reader: ObjectReader) -> Mapping[PullRequestNumber, KnownMetadata]:
        """What cannot be read now is read again the next time."""
        blobs = await self._list_metadata()
        known = {number: each for number, each in self._known.items() if each.blob == blobs.get(number)}
        unknown = [number for number in blobs if number not in known]
        for start in range(0, len(unknown), MAX_LISTED):
            for stored in await _read_all(reader, unknown[start : start + MAX_LISTED]):
                known[stored.number] = KnownMetadata(stored.blob, stored.meta.branch if is_open(stored) else "")
        return known


class UnreadablePullRequest(Struct, frozen=True):
    number: PullRequestNumber
    detail: str


async def list_pull_requests(folder: Path) -> list[StoredPullRequest | UnreadablePullRequest]:
    numbers = {number for ref in await list_refs(folder, "refs/pull") if (number := pull_request_number_of(ref))}
    reader = await ObjectReader.start(folder)
    try:
        return await asyncio.gather(*(read_or_explain(reader, number) for number in sorted(numbers)))
    finally:
        await reader.close()


async def read_or_explain(reader: ObjectReader, number: PullRequestNumber) -> StoredPullRequest | UnreadablePullRequest:
    try:
        stored = await read_stored_pull_request(reader, number)
    except HostUnavailable as error:
        return UnreadablePullRequest(number, str(error))
    return stored or UnreadablePullRequest(number, "its head or its metadata is missing")
