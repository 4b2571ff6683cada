"""HTTP client for forges: within rate limits, with conditional requests, without redirects; credentials."""

import asyncio
import ssl
from base64 import b64encode
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Mapping
from copy import copy
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Self, TypeVar, cast
from urllib.parse import quote

import httpx
import msgspec
from msgspec import Struct

from mergeyard.adapters.forges.rate_limits import RateLimits
from mergeyard.domain.ids import Repo
from mergeyard.domain.timestamps import SECOND, Instant
from mergeyard.ports.forge import ChecksFrom, HostRefused, HostUnavailable
from mergeyard.ports.git import Remote

MAX_CACHE_BYTES = 32 * 1024 * 1024
ENTRY_OVERHEAD_BYTES = 500
"""Approximate memory of an entry in addition to its URL and body."""


class CachedResponse(Struct, frozen=True):
    etag: str
    link: str
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
MAX_RESPONSE_BYTES = 20 * 1024 * 1024
MAX_PAGES = 50
MAX_CONCURRENT_REQUESTS = 8
NO_RESPONSE_STATUS = 599
"""Recorded in the rate limits when no response arrived, so that it counts as a failure."""
MAX_DETAIL_CHARS = 300
MISSING_STATUSES = (404, 410)
TRANSIENT_STATUSES = (401, 408, 429)
"""Can succeed later; 401 because credentials are being renewed."""
REDIRECT_STATUSES = (301, 302, 303, 307, 308)
"""Never followed: our credentials are sent only to the configured address."""

DECODE_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)

T = TypeVar("T")
Query = Mapping[str, str | int]
HeadersProvider = Callable[[], Awaitable[Mapping[str, str]]]
"""Returns the authorization headers for one request."""
OnUnauthorized = Callable[[], None]
"""Called after a 401, to discard cached credentials."""


class Reply(Struct, frozen=True):
    status: int
    headers: Mapping[str, str]
    body: bytes
    url: str

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    def raise_for_status(self, *, allowed: Collection[int] = ()) -> Self:
        """Returns itself for a 2xx status or one of `allowed`; otherwise raises `to_error()`."""
        if not self.is_success and self.status not in allowed:
            raise self.to_error()
        return self

    def decode(self, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(self.body, type=kind)
        except DECODE_ERRORS as error:
            raise HostUnavailable(f"unexpected response from {self.url}: {error}") from error

    @property
    def is_rate_limited(self) -> bool:
        """Some forges report a rate limit as 403, with a header or only with a message."""
        if self.status != 403:
            return self.status == 429
        if "retry-after" in self.headers or self.headers.get("x-ratelimit-remaining") == "0":
            return True
        detail = extract_error_detail(self.body).lower()
        return "rate limit" in detail or "abuse" in detail

    @property
    def is_transient(self) -> bool:
        """Whether a retry can succeed."""
        return self.is_rate_limited or self.status >= 500 or self.status in TRANSIENT_STATUSES

    def to_error(self) -> HostUnavailable:
        """`HostRefused` when a retry cannot succeed, otherwise `HostUnavailable`."""
        kind = HostRefused if self.status >= 400 and not self.is_transient else HostUnavailable
        return kind(f"{self.url} answered {self.status}: {extract_error_detail(self.body)}")


class ForgeClient:
    """Requests for landings are `urgent`: they can also spend the reserve of the rate limit."""

    def __init__(self, base: str, credentials: HeadersProvider, limits: RateLimits) -> None:
        """`base` is the URL that every path is appended to, without a trailing slash."""
        self._base = base
        self.repo: Repo | None = None
        """The repository that paths are relative to, after `for_repository`."""
        self._repo_path = ""
        self._credentials = credentials
        self._limits = limits
        self._on_unauthorized: OnUnauthorized | None = None
        self._cache = ResponseCache()
        headers = {"user-agent": "mergeyard"}
        self._http = httpx.AsyncClient(timeout=REQUEST_TIMEOUT_S, headers=headers, verify=load_certificates())
        self._slots = asyncio.Semaphore(MAX_CONCURRENT_REQUESTS)

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

    async def get(self, path: str, kind: type[T], query: Query | None = None, *, urgent: bool = False) -> T | None:
        """The resource, or None if there is none (404, 410). Raises when only the reserve for landings is left, unless
        the request is urgent."""
        self._raise_if_reserved(urgent=urgent)
        reply = await self._get_cached(self._repo_path + path, query)
        return None if reply.status in MISSING_STATUSES else reply.raise_for_status().decode(kind)

    async def get_all(
        self,
        path: str,
        kind: type[list[T]],
        query: Query | None = None,
        *,
        urgent: bool = False,
        first_pages: int | None = None,
    ) -> list[T]:
        """The items of all pages, or of the first ones only; an empty list if there is no such resource."""
        self._raise_if_reserved(urgent=urgent)
        items, next_path = list[T](), cast(str | None, self._repo_path + path)
        for _ in range(first_pages or MAX_PAGES):
            reply = await self._get_cached(cast(str, next_path), query)
            if reply.status in MISSING_STATUSES:
                return items
            items += reply.raise_for_status().decode(kind)
            next_path, query = self._next_page(reply), None
            if next_path is None:
                return items
        if first_pages is not None:
            return items
        raise HostUnavailable(f"{self._base}{self._repo_path}{path} has more than {MAX_PAGES} pages")

    async def read_repository(self, kind: type[T], *, urgent: bool = False) -> T:
        """Raises if the repository is not visible to us."""
        found = await self.get("", kind, urgent=urgent)
        if found is None:
            raise HostUnavailable(
                f"{self.repo} is not visible to us: give the account or the app of Mergeyard access to it again"
            )
        return found

    async def send(self, method: str, path: str, body: Any = None) -> Reply:
        """Sends a request without the cache. The caller decides which 4xx statuses are errors."""
        content = None if body is None else msgspec.json.encode(body)
        return await self._request(method, self._repo_path + path, None, {"content-type": "application/json"}, content)

    async def close(self) -> None:
        await self._http.aclose()

    def _raise_if_reserved(self, *, urgent: bool) -> None:
        if not urgent:
            self._limits.raise_if_only_reserve_left()

    async def _get_cached(self, path: str, query: Query | None) -> Reply:
        url = str(httpx.URL(self._base + path, params=query or None))
        cached = self._cache.get(url)
        headers = {} if cached is None else {"if-none-match": cached.etag}
        reply = await self._request("GET", path, query, headers, None)
        if reply.status == 304 and cached is not None:
            return msgspec.structs.replace(reply, status=200, body=cached.body, headers={"link": cached.link})
        if reply.is_success and "etag" in reply.headers:
            self._cache.put(url, CachedResponse(reply.headers["etag"], reply.headers.get("link", ""), reply.body))
        return reply

    async def _request(
        self, method: str, path: str, query: Query | None, headers: Mapping[str, str], content: bytes | None
    ) -> Reply:
        self._limits.raise_if_paused()
        url = self._base + path
        headers = {"accept": "application/json", **await self._credentials(), **headers}
        try:
            request = self._http.build_request(method, url, params=query, headers=headers, content=content)
            async with self._slots:
                reply = await _send_request(self._http, request)
        except httpx.HTTPError as error:
            self._limits.record_response(NO_RESPONSE_STATUS, {})
            raise HostUnavailable(f"{url} does not answer: {str(error) or type(error).__name__}") from error
        if reply.status == 401 and self._on_unauthorized is not None:
            self._on_unauthorized()
        self._limits.record_response(429 if reply.is_rate_limited else reply.status, reply.headers)
        if reply.is_transient or reply.status in REDIRECT_STATUSES:
            raise reply.to_error()
        if self.repo is not None and reply.status in MISSING_STATUSES and path != self._repo_path:
            await self.read_repository(dict[str, Any], urgent=True)
        return reply

    def _next_page(self, reply: Reply) -> str | None:
        """Only below our own base URL: a link to another server must not receive our credentials."""
        for link in reply.headers.get("link", "").split(","):
            url, _, parameters = link.strip().partition(">")
            if 'rel="next"' in parameters:
                base, path = url[1 : 1 + len(self._base)], url[1 + len(self._base) :]
                if base != self._base or not path.startswith("/"):
                    raise HostUnavailable(
                        f"the next page of {reply.url} is at {url[1:]}, not below {self._base}: "
                        "configure the URL that the Git host uses for itself"
                    )
                return path
        return None


@cache
def load_certificates() -> ssl.SSLContext:
    """Cached: loading the trusted certificates takes longer than many requests."""
    return httpx.create_ssl_context()


def extract_error_detail(body: bytes) -> str:
    """The readable part of an error response, shortened."""
    try:
        decoded = msgspec.json.decode(body)
    except DECODE_ERRORS:
        decoded = body.decode(errors="replace")
    detail = cast(dict[str, Any], decoded).get("message", decoded) if isinstance(decoded, dict) else decoded
    return " ".join(str(detail).split())[:MAX_DETAIL_CHARS]


async def _send_request(client: httpx.AsyncClient, request: httpx.Request) -> Reply:
    response = await client.send(request, stream=True)
    try:
        url = str(request.url.copy_with(query=None))
        return Reply(response.status_code, dict(response.headers), await _read_body(response), url)
    finally:
        await response.aclose()


async def _read_body(response: httpx.Response) -> bytes:
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

    def __repr__(self) -> str:
        """Omits the secrets, because this text can end up in logs."""
        return f"{type(self).__name__}({self.name!r}, {self.web_url!r}, {self.api_url!r})"


def quote_segment(text: str) -> str:
    """Quotes untrusted text as a single path segment."""
    if text in ("", ".", ".."):
        raise HostUnavailable(f"{text!r} is not a valid name: check the spelling")
    return quote(text, safe="")


def build_git_remote(url: str, user: str, password: str) -> Remote:
    basic = b64encode(f"{user}:{password}".encode()).decode()
    environment = {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"http.{url}.extraHeader",
        "GIT_CONFIG_VALUE_0": f"Authorization: Basic {basic}",
    }
    return Remote(url, environment)
