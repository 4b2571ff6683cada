"""HTTP client for forges: within rate limits, with conditional requests, without redirects; credentials."""

import asyncio
import re
import ssl
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from copy import copy
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Self, TypedDict, TypeVar, Unpack
from urllib.parse import quote, unquote

import httpx2
import msgspec
import structlog
from msgspec import Struct

from mergeyard.adapters.forges.rate_limits import (
    ALL_CALLS,
    MAX_DETAIL_CHARS,
    MAX_ERROR_BYTES,
    MAX_HEADER_CHARS,
    ORDINARY_WRITES,
    WRITES,
    RateLimits,
    Reply,
    WritePace,
)
from mergeyard.domain.ids import Repo
from mergeyard.domain.timestamps import SECOND, Instant
from mergeyard.ports.forge import (
    ChecksFrom,
    HostAccessLost,
    HostError,
    HostUnavailable,
    RequestBudget,
    RequestPurpose,
    current_purpose,
    requests_for,
)
from mergeyard.ports.git import Signer

log = structlog.get_logger()

MAX_CACHE_BYTES = 32 * 1024 * 1024
ENTRY_OVERHEAD_BYTES = 500
"""Approximate memory of an entry in addition to its URL and body."""


class CachedResponse(Struct, frozen=True):
    etag: str
    page_headers: Mapping[str, str]
    body: bytes


class ResponseCache:
    """Evicts the least recently used entries when it exceeds its size."""

    def __init__(self, max_bytes: int = MAX_CACHE_BYTES) -> None:
        self._max_bytes = max_bytes
        self._size_bytes = 0
        self._responses = OrderedDict[str, CachedResponse]()

    def get(self, url: str) -> CachedResponse | None:
        response = self._responses.get(url)
        if response is not None:
            self._responses.move_to_end(url)
        return response

    def put(self, url: str, response: CachedResponse) -> None:
        self._evict(url)
        self._responses[url] = response
        self._size_bytes += _entry_size(url, response)
        while self._size_bytes > self._max_bytes:
            self._evict(next(iter(self._responses)))

    def _evict(self, url: str) -> None:
        evicted = self._responses.pop(url, None)
        self._size_bytes -= 0 if evicted is None else _entry_size(url, evicted)


def _entry_size(url: str, response: CachedResponse) -> int:
    return ENTRY_OVERHEAD_BYTES + len(url) + len(response.body)


REQUEST_TIMEOUT_S = 30
"""For each step of a request, such as to connect or to read a part of the response."""
TOTAL_TIMEOUT_S = 2 * REQUEST_TIMEOUT_S
"""For a request with its whole response: other writes wait for that."""
MAX_RESPONSE_BYTES = 20 * 1024 * 1024
MAX_PAGES = 50
MAX_CONCURRENT_REQUESTS = 8
NO_RESPONSE_STATUS = 599
"""Recorded in the rate limits when no response arrived, so that it counts as a failure."""
RATE_LIMITED_TYPE = b'"RATE_LIMITED"'
"""GitHub reports an exceeded limit of its GraphQL API with status 200, and with this type of error."""
NOT_FOUND, GONE = 404, 410
MISSING_STATUSES = (NOT_FOUND, GONE)
"""For single comments, labels and reactions. Elsewhere GitHub answers 410 when it has ended a version of its API."""
REDIRECT_STATUSES = (301, 302, 303, 307, 308)
"""Never followed: our credentials are sent only to the configured address."""
MOVED_MESSAGE = b"moved projects"
"""Part of GitLab's message when it answers 405 to a write below the former name of a project."""
BRANCHES_PATH = "/branches/"
PAGE_HEADERS = ("link", "x-next-page")
END_HEADERS = ("deprecation", "sunset")
VARIABLE_SEGMENT = re.compile(r"/[^/]*[0-9%][^/]*")
"""A number, a commit, or a quoted name in a path."""

T = TypeVar("T")
Query = Mapping[str, str | int]
HeadersProvider = Callable[[], Awaitable[Mapping[str, str]]]
"""Returns the authorization headers for one request."""
OnUnauthorized = Callable[[], None]
"""Called after a 401, to discard cached credentials."""


class ReadOptions(TypedDict, total=False):
    urgent: bool
    """A merge needs it, whatever the purpose of the current requests is."""
    missing: Collection[int]
    """The statuses that mean that there is no such resource; by default only 404."""


class RenamedRepository(Struct, frozen=True):
    """GitLab calls it `path_with_namespace`, the others `full_name`."""

    full_name: str = ""
    path_with_namespace: str = ""


class ForgeClient:
    """How much of the rate limit a request leaves to others depends on the current `RequestPurpose`; an `urgent` one is
    for merging. Urgent writes do not wait for others."""

    def __init__(
        self, base: str, credentials: HeadersProvider, limits: RateLimits, ca_file: Path | None = None
    ) -> None:
        """`base` is the URL that every path is appended to, without a trailing slash."""
        self._base = base
        self.repo: Repo | None = None
        """The repository that paths are relative to, after `for_repository`."""
        self._repo_path = ""
        self._credentials = credentials
        self._on_unauthorized: OnUnauthorized | None = None
        self._announced_ends = set[str]()
        headers = {"user-agent": "mergeyard"}
        self._http = httpx2.AsyncClient(timeout=REQUEST_TIMEOUT_S, headers=headers, verify=load_certificates(ca_file))
        self._set_limits(limits)

    def _set_limits(self, limits: RateLimits) -> None:
        self._limits = limits
        self._query_limits = limits.copy_unused()
        self._cache = ResponseCache()
        self._slots = asyncio.Semaphore(MAX_CONCURRENT_REQUESTS)

    def with_own_limits(self) -> Self:
        """A copy for another account on the same forge, with its own cache and rate limits."""
        other = copy(self)
        other._set_limits(self._limits.copy_unused())
        return other

    def for_repository(
        self,
        repo: Repo,
        path: str,
        credentials: HeadersProvider | None = None,
        on_unauthorized: OnUnauthorized | None = None,
    ) -> Self:
        """A copy whose paths are relative to the path of a repository; the empty path is the repository itself. It
        shares the connections, the cache and the rate limits.

        A 404 is ambiguous on every forge: it also means that our account lost access. So after each 404 below the
        repository, this client verifies that the repository itself is visible, and raises if it is not.
        """
        other = copy(self)
        other.repo, other._repo_path = repo, path
        other._credentials, other._on_unauthorized = credentials or self._credentials, on_unauthorized
        return other

    def without_repository(self) -> Self:
        """A copy for paths that are not below the repository, with the same credentials."""
        other = copy(self)
        other.repo, other._repo_path = None, ""
        return other

    async def get(
        self, path: str, kind: type[T], query: Query | None = None, **options: Unpack[ReadOptions]
    ) -> T | None:
        """The resource, or None if there is none."""
        self._raise_if_kept(urgent=options.get("urgent", False))
        return _decode_unless_missing(await self._get_cached(self._repo_path + path, query), kind, options)

    async def iterate_pages(
        self, path: str, kind: type[T], query: Query | None = None, **options: Unpack[ReadOptions]
    ) -> AsyncGenerator[T]:
        """The pages of a list, each requested when the caller wants it; none if there is no such resource. A page can
        have fewer items than requested and still not be the last one."""
        self._raise_if_kept(urgent=options.get("urgent", False))
        places: list[tuple[str, Query | None]] = [(self._repo_path + path, query)]
        for place in places:
            if len(places) > MAX_PAGES:
                raise HostUnavailable(f"{self._base}{self._repo_path}{path} has more than {MAX_PAGES} pages")
            reply = await self._get_cached(*place)
            page = _decode_unless_missing(reply, kind, options)
            if page is not None:
                yield page
                places += self._find_next_page(reply, self._repo_path + path, query)

    async def get_all(
        self,
        path: str,
        kind: type[list[T]],
        query: Query | None = None,
        first_pages: int | None = None,
        **options: Unpack[ReadOptions],
    ) -> list[T]:
        """The items of all pages, or of the first ones only; an empty list if there is no such resource."""
        items, pages = list[T](), 0
        async for page in self.iterate_pages(path, kind, query, **options):
            items += page
            pages += 1
            if pages == first_pages:
                break
        return items

    async def read_repository(self, kind: type[T], *, urgent: bool = False) -> T:
        """Raises if the repository is not visible to us."""
        found = await self.get("", kind, urgent=urgent)
        if found is None:
            raise HostAccessLost(
                f"{self.repo} is not visible to us: give the account or the app of Mergeyard access to it again"
            )
        return found

    async def send(self, method: str, path: str, body: Any = None, *, urgent: bool = False) -> Reply:
        """Sends a request without the cache. The caller decides which 4xx statuses are errors. A write that is not
        urgent waits for its turn."""
        is_read = method == "GET"
        self._raise_if_kept(urgent=urgent or is_read)
        content = None if body is None and method != "POST" else msgspec.json.encode({} if body is None else body)
        kinds = () if is_read else (WRITES,) if urgent else (WRITES, ORDINARY_WRITES)
        return await self._request(method, self._repo_path + path, content=content, kinds=kinds)

    async def query(self, query: str, variables: Mapping[str, Any]) -> Reply:
        """Sends a GraphQL query to GitHub, whose GraphQL API is next to the REST API: `…/api/graphql` on an enterprise
        server, where the REST API is `…/api/v3`."""
        other = copy(self)
        other._base, other._limits, other.repo = self._base.removesuffix("/v3"), self._query_limits, None
        other._raise_if_kept(urgent=False)
        content = msgspec.json.encode({"query": query, "variables": variables})
        reply = await other._request("POST", "/graphql", content=content)
        if RATE_LIMITED_TYPE in reply.body[:MAX_ERROR_BYTES]:
            self._query_limits.record_response(429, reply.headers)
            raise self._query_limits.to_error(str(reply.to_error()), ALL_CALLS)
        return reply.raise_for_status()

    def list_budgets(self, account: str) -> list[RequestBudget]:
        rest = self._limits.read_budget(account, "rest")
        graphql = self._query_limits.read_budget(account, "graphql")
        return [budget for budget in (rest, graphql) if budget is not None]

    async def close(self) -> None:
        await self._http.aclose()

    def _raise_if_kept(self, *, urgent: bool) -> None:
        """What a merge needs is not urgent for a page that shows it."""
        for_merging = urgent and current_purpose() is not RequestPurpose.DISPLAY
        with requests_for(RequestPurpose.MERGING) if for_merging else nullcontext():
            self._limits.raise_if_kept()

    async def _get_cached(self, path: str, query: Query | None) -> Reply:
        url = str(httpx2.URL(self._base + path, params=query or None))
        cached = self._cache.get(url)
        headers = {} if cached is None else {"if-none-match": cached.etag}
        reply = await self._request("GET", path, query, headers)
        if reply.status == 304 and cached is not None:
            return msgspec.structs.replace(reply, status=200, body=cached.body, headers=cached.page_headers)
        if reply.is_success and "etag" in reply.headers:
            page_headers = {name: reply.headers[name] for name in PAGE_HEADERS if name in reply.headers}
            self._cache.put(url, CachedResponse(reply.headers["etag"], page_headers, reply.body))
        return reply

    async def _request(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
        kinds: Sequence[str] = (),
    ) -> Reply:
        """`kinds`: those of a write, the narrowest last."""
        endpoint = f"{method} {VARIABLE_SEGMENT.sub('/*', path.removeprefix(self._repo_path).partition('?')[0])}"
        self._limits.raise_if_paused(endpoint, *kinds)
        url = self._base + path
        content_type = {} if content is None else {"content-type": "application/json"}
        headers = {"accept": "application/json", **await self._credentials(), **content_type, **(headers or {})}
        try:
            request = self._http.build_request(method, url, params=query, headers=headers, content=content)
            turn = self._limits.write(endpoint, *kinds) if kinds else nullcontext()
            async with turn, self._slots, asyncio.timeout(TOTAL_TIMEOUT_S):
                reply = await _send_request(self._http, request)
        except (httpx2.HTTPError, TimeoutError) as error:
            self._limits.record_response(NO_RESPONSE_STATUS, {})
            raise HostUnavailable(f"{url} does not answer: {str(error) or type(error).__name__}") from error
        # Recorded before another task runs, so that the next write finds the pause.
        self._log_announced_end(reply)
        if reply.status == 401 and self._on_unauthorized is not None:
            self._on_unauthorized()
        if reply.is_rate_limited:
            limited_kind = reply.find_limited_kind(endpoint, kinds)
            self._limits.record_response(429, reply.headers, limited_kind)
            raise self._limits.to_error(str(reply.to_error()), limited_kind)
        self._limits.record_response(reply.status, reply.headers)
        if reply.is_transient:
            raise reply.to_error()
        is_redirected = reply.status in REDIRECT_STATUSES
        is_moved = is_redirected or (reply.status == 405 and MOVED_MESSAGE in reply.body[:MAX_ERROR_BYTES])
        if self.repo is not None and path != self._repo_path and (is_moved or reply.status in MISSING_STATUSES):
            await self.read_repository(dict[str, Any], urgent=True)  # raises if it was renamed or is not visible
        if is_redirected:
            raise await self._to_redirect_error(reply, path)
        return reply

    def _log_announced_end(self, reply: Reply) -> None:
        """Once: GitHub announces the end of a version of its API in the headers of every response."""
        ends = {name: reply.headers[name][:MAX_HEADER_CHARS] for name in END_HEADERS if name in reply.headers}
        if ends and not self._announced_ends:
            self._announced_ends.add(self._limits.name)
            log.warning("api_version_ends", host=self._limits.name, url=reply.url, **ends)

    async def _to_redirect_error(self, reply: Reply, path: str) -> HostError:
        """Forges redirect from the former name of a repository. A redirect of the repository itself, to an address
        below our own base URL, is followed once, to read the new name."""
        location = _resolve_location(reply)
        if self.repo is not None and path == self._repo_path and location.startswith(f"{self._base}/"):
            moved = await self.without_repository()._request("GET", location.removeprefix(self._base))
            repository = moved.decode(RenamedRepository)
            name = (repository.full_name or repository.path_with_namespace)[:MAX_DETAIL_CHARS]
            if name:
                return HostAccessLost(
                    f"{self.repo} is now {self.repo.host}/{name}: create the queue for the new name, or rename it back"
                )
        if BRANCHES_PATH in path:
            return HostUnavailable(_describe_renamed_branch(path, location))
        return HostUnavailable(
            f"{reply.url} answered {reply.status}: it redirects to {location[:MAX_DETAIL_CHARS] or 'no valid URL'}, "
            "which we do not follow. If the repository was renamed, create the queue for the new name; otherwise "
            "configure the URL that the Git host uses for itself"
        )

    def _find_next_page(self, reply: Reply, path: str, query: Query | None) -> Iterator[tuple[str, Query | None]]:
        """By its number if the forge reports one: in links, GitLab uses the host name of its own settings, which can be
        another one. Links are followed only below our own base URL: another server must not get our credentials."""
        number = reply.headers.get("x-next-page")
        if number is not None:
            if number.isascii() and number.isdecimal():
                yield path, {**(query or {}), "page": int(number[:9])}
            return
        for link in reply.headers.get("link", "").split(","):
            url, _, parameters = link.strip().partition(">")
            if 'rel="next"' in parameters:
                if not url[1:].startswith(f"{self._base}/"):
                    raise HostUnavailable(
                        f"the next page of {reply.url} is at {url[1:]}, not below {self._base}: "
                        "configure the URL that the Git host uses for itself"
                    )
                yield url[1:].removeprefix(self._base), None
                return


@cache
def load_certificates(ca_file: Path | None) -> ssl.SSLContext:
    """Those of the file only, or without one those of the system, as git does.

    Cached: loading them takes longer than many requests.
    """
    return httpx2.create_ssl_context() if ca_file is None else ssl.create_default_context(cafile=ca_file)


def _decode_unless_missing(reply: Reply, kind: type[T], options: ReadOptions) -> T | None:
    if reply.status in options.get("missing", (NOT_FOUND,)):
        return None
    if reply.status == GONE:
        raise HostUnavailable(
            f"{reply.to_error()}. The Git host no longer offers this call, or this version of its API: update Mergeyard"
        )
    return reply.raise_for_status().decode(kind)


def _describe_renamed_branch(path: str, location: str) -> str:
    """GitHub redirects from the former name of a branch. The new name is in the address, if that is still one of a
    branch."""
    old = unquote(path.partition(BRANCHES_PATH)[2].partition("/")[0])
    new = unquote(location.partition(BRANCHES_PATH)[2].partition("/")[0])[:MAX_DETAIL_CHARS]
    renamed = f"the branch {old} was renamed to {new}" if new else f"the branch {old} was renamed"
    return f"{renamed}: create a queue for the new name, or rename the branch back"


def _resolve_location(reply: Reply) -> str:
    """The target of a redirect. Forges also send a path only. Empty if it is not valid."""
    try:
        return str(httpx2.URL(reply.url).join(reply.headers["location"][:MAX_ERROR_BYTES]))
    except (KeyError, httpx2.InvalidURL):
        return ""


async def _send_request(client: httpx2.AsyncClient, request: httpx2.Request) -> Reply:
    response = await client.send(request, stream=True)
    try:
        url = str(request.url.copy_with(query=None))
        return Reply(response.status_code, dict(response.headers), await _read_body(response), url)
    finally:
        await response.aclose()


async def _read_body(response: httpx2.Response) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > MAX_RESPONSE_BYTES:
            raise HostUnavailable(f"{response.url} answers with more than {MAX_RESPONSE_BYTES} bytes")
    return bytes(body)


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_instant(time: datetime) -> Instant:
    return Instant((time - EPOCH) // timedelta(milliseconds=1))


def format_timestamp(instant: Instant) -> str:
    """Rounded down to a second: some forges do not accept fractions."""
    return (EPOCH + timedelta(seconds=instant // SECOND)).strftime("%Y-%m-%dT%H:%M:%SZ")


class App(Struct, frozen=True):
    """A GitHub App, with the private key that signs its JWTs."""

    id: str
    private_key: str

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r})"


class ForgeConfig(Struct, frozen=True, kw_only=True):
    name: str
    """The host part of repository names: `github.com`."""
    web_url: str
    """Base URL of the web pages and of git over HTTP: `https://github.com`."""
    api_url: str
    """Base URL of the API: `https://api.github.com`."""
    token: str | None = None
    app: App | None = None
    webhook_secret: str | None = None
    checks_from: ChecksFrom = ChecksFrom.HOST
    poll_interval_ms: int = 20_000
    unreadable_rules_block: bool = True
    """Whether a pull request waits while a rule of its base branch cannot be read."""
    public_url: str | None = None
    """The address of our server, which webhooks must be sent to; None: not configured."""
    ca_file: Path | None = None
    write_pace: WritePace | None = None
    """None: the forge does not limit writes."""
    signer: Signer | None = None
    """The key that signs our commits, which must be registered on the forge; None: our commits are not signed."""
    committer_email: str | None = None

    def __repr__(self) -> str:
        """Omits the secrets, because this text can end up in logs."""
        return f"{type(self).__name__}({self.name!r}, {self.web_url!r}, {self.api_url!r})"


def quote_segment(text: str) -> str:
    """Quotes untrusted text as a single path segment."""
    if text in ("", ".", ".."):
        raise HostUnavailable(f"{text!r} is not a valid name: check the spelling")
    return quote(text, safe="")
