"""Lists from the Git host that users choose from: open pull requests, and the names of checks seen lately.

Both are cached for a few seconds, because a user who opens a dialog twice does not need a second answer of the host.
"""

import asyncio
from collections.abc import Sequence
from typing import Generic, TypeVar

import structlog

from mergeyard.domain.ids import STATUS_CONTEXT, QueueKey, Repo, Sha
from mergeyard.domain.timestamps import SECOND, Instant, later
from mergeyard.ports.external import Clock
from mergeyard.ports.forge import (
    ChecksFrom,
    Forge,
    HostAccessLost,
    HostError,
    HostRefused,
    HostUnavailable,
    OpenPullRequest,
    RequestPurpose,
    UnexpectedHostResponse,
    requests_for,
)
from mergeyard.ports.store import Store
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.repositories import Repositories

log = structlog.get_logger()

T = TypeVar("T")

CACHE_MS = 10 * SECOND
MAX_CACHED_QUEUES = 200
TIMEOUT_S = 10.0
"""A user waits for the answer."""
MAX_HEADS = 5
MAX_CHECKS = 50
MAX_CHECK_NAME_CHARS = 255
"""The longest name that our API accepts."""


class ShortCache(Generic[T]):
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._cached: dict[QueueKey, tuple[Instant, T]] = {}
        """Each with the time of its read, oldest first."""

    def get(self, key: QueueKey) -> T | None:
        read_at, value = self._cached.get(key, (None, None))
        return value if read_at is not None and self._clock.now() < later(read_at, CACHE_MS) else None

    def put(self, key: QueueKey, value: T) -> None:
        self._cached.pop(key, None)
        self._cached[key] = (self._clock.now(), value)
        if len(self._cached) > MAX_CACHED_QUEUES:
            del self._cached[next(iter(self._cached))]


class OpenPullRequests:
    def __init__(self, repositories: Repositories, clock: Clock, timeout_s: float = TIMEOUT_S) -> None:
        self._repositories = repositories
        self._timeout_s = timeout_s
        self._cache = ShortCache[Sequence[OpenPullRequest]](clock)

    async def list(self, key: QueueKey) -> Sequence[OpenPullRequest]:
        """The newest open pull requests into the branch, at most a few seconds old. There need not be a queue. The
        caller checks that the user is allowed to see the repository."""
        host = self._repositories.get_host(key.repo.host)
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self.read(key)
        except TimeoutError:
            code, problem = Code.PROVIDER_TIMEOUT, f"did not answer within {self._timeout_s:g} seconds"
        except (HostRefused, HostAccessLost, UnexpectedHostResponse) as error:
            code, problem = Code.PROVIDER_ERROR, f"did not list its open pull requests ({error})"
        except HostUnavailable as error:
            code, problem = Code.PROVIDER_UNAVAILABLE, f"cannot be read ({error})"
        log.warning("open_pull_requests_not_read", repo=str(key.repo), branch=key.branch, error=problem)
        raise RequestRefused(code, f"{host.name} {problem}. Enter the number of the pull request, or try again later.")

    async def read(self, key: QueueKey) -> Sequence[OpenPullRequest]:
        """Like `list`, but raises the error of the Git host and waits as long as it takes."""
        found = self._cache.get(key)
        if found is None:
            host = self._repositories.get_host(key.repo.host)
            with requests_for(RequestPurpose.DISPLAY):
                found = await host.open_pull_requests(key.repo, key.branch)
            self._cache.put(key, found)
        return found


class RecentChecks:
    def __init__(
        self,
        repositories: Repositories,
        open_pull_requests: OpenPullRequests,
        store: Store,
        clock: Clock,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._repositories = repositories
        self._open_pull_requests = open_pull_requests
        self._store = store
        self._timeout_s = timeout_s
        self._cache = ShortCache[tuple[str, ...]](clock)

    async def list(self, repo: Repo, branch: str) -> tuple[str, ...]:
        """Names of checks that ran on the tip of the branch or on a new pull request into it, in alphabetical order:
        suggestions for the required checks. Empty if the Git host does not answer. The caller checks that the user is
        allowed to see the repository."""
        key = QueueKey(repo, branch)
        found = self._cache.get(key)
        if found is not None:
            return found
        try:
            async with asyncio.timeout(self._timeout_s):
                with requests_for(RequestPurpose.DISPLAY):
                    names = await self._read(key)
        except (HostError, TimeoutError) as error:
            log.warning("recent_checks_not_read", repo=str(repo), branch=branch, error=str(error) or "timeout")
            return ()
        self._cache.put(key, names)
        return names

    async def _read(self, key: QueueKey) -> tuple[str, ...]:
        host = self._repositories.get_host(key.repo.host)
        forge = host.forge if host.checks_from is ChecksFrom.HOST else None
        tip = await host.branch_tip(key.repo, key.branch)
        heads = [one.head for one in (await self._open_pull_requests.read(key))[:MAX_HEADS]]
        commits = dict.fromkeys(heads if tip is None else [tip, *heads])
        read = await asyncio.gather(*(self._read_names(forge, key, commit) for commit in commits))
        names = {name for each in read for name in each if 0 < len(name) <= MAX_CHECK_NAME_CHARS} - {STATUS_CONTEXT}
        return tuple(sorted(names)[:MAX_CHECKS])

    async def _read_names(self, forge: Forge | None, key: QueueKey, commit: Sha) -> set[str]:
        """The names that the Git host has, if the queue reads checks there, and those that CI reported to us."""
        reported = await self._store.statuses(key.repo, commit)
        at_forge = () if forge is None else await forge.statuses(key.repo, commit, key.branch)
        return {status.context for status in (*reported, *at_forge)}
