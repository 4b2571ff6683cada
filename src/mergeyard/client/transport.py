"""One exchange with the server: requests, retries, responses and errors, independent of the HTTP library."""

import random
from collections.abc import Generator, Mapping
from typing import Any, Generic, Self, TypeVar, assert_never

import msgspec
from msgspec import Struct
from msgspec.structs import replace

ResponseT = TypeVar("ResponseT")


class SendRequest(Struct, frozen=True, kw_only=True):
    method: str
    path: str
    query: Mapping[str, str]
    content: bytes | None
    headers: Mapping[str, str]
    timeout_s: float
    """Timeout for the response."""


class Pause(Struct, frozen=True):
    seconds: float


class Reply(Struct, frozen=True, kw_only=True):
    status: int
    body: bytes
    retry_after: str | None = None


class NoReply(Struct, frozen=True):
    """No response, or an incomplete one."""

    detail: str


Exchange = Generator[SendRequest | Pause, Reply | NoReply | None, ResponseT]
"""Yields the next step, is sent its result (None after a pause), and returns the response. It performs no I/O."""


MIN_PAUSE_S = 0.2
MAX_PAUSE_S = 10.0


class RetryPolicy(Struct, frozen=True):
    total_timeout_s: float = 60
    """Seconds after which no further attempt is started."""
    response_timeout_s: float = 60
    """Seconds to wait for one response; long, because a list of targets can have 20 MiB."""


def compute_pause_s(attempt: int, retry_after: str | None) -> float:
    """Exponential backoff with jitter, so that clients do not retry in step; at least the server's `Retry-After`."""
    upper = min(MAX_PAUSE_S, MIN_PAUSE_S * 2 ** min(attempt, 10))
    return max(random.uniform(upper / 2, upper), parse_retry_after(retry_after))


def parse_retry_after(retry_after: str | None) -> float:
    """Returns the seconds, or 0 for a date: only proxies send dates, and the own backoff suffices for them."""
    return float(retry_after) if retry_after is not None and retry_after.isdecimal() else 0


class Request(Struct, Generic[ResponseT], frozen=True, kw_only=True):
    endpoint: str
    members: Mapping[str, Any]
    response: type[ResponseT]
    """`str` means a GET request: the members are query parameters, and the response is text."""
    writes: bool = False
    extra_time_s: float = 0
    """Seconds that the server may need for this request, in addition to the usual timeout."""


def read_request(
    endpoint: str, response: type[ResponseT], /, *, extra_time_s: float = 0, **members: Any
) -> Request[ResponseT]:
    return Request(endpoint=endpoint, members=drop_unset(members), response=response, extra_time_s=extra_time_s)


def write_request(
    endpoint: str, response: type[ResponseT], /, *, extra_time_s: float = 0, **members: Any
) -> Request[ResponseT]:
    return replace(read_request(endpoint, response, extra_time_s=extra_time_s, **members), writes=True)


def drop_unset(members: Mapping[str, Any]) -> dict[str, Any]:
    """Drops the members that the caller did not set."""
    return {name: value for name, value in members.items() if value is not None}


def to_camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


class FieldError(Struct, frozen=True):
    """One invalid place in the request, as a JSON pointer."""

    pointer: str
    message: str


class Problem(Struct, frozen=True, kw_only=True, rename="camel"):
    """The body of every error response."""

    code: str
    title: str
    status: int
    detail: str
    request_id: str
    retryable: bool
    errors: tuple[FieldError, ...] = ()


class MergeyardError(Exception):
    """The server refused the request and changed nothing. `code` is stable; the texts can change."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(f"{problem.detail} ({problem.code}, request {problem.request_id})")
        self.code = problem.code
        self.title = problem.title
        self.detail = problem.detail
        self.status = problem.status
        self.request_id = problem.request_id
        self.retryable = problem.retryable
        self.errors = problem.errors


class Unreachable(Exception):
    """No response, or not one of Mergeyard (a proxy, another server), until the retry policy gave up."""


TOO_MANY_REQUESTS = 429
UNKNOWN_OUTCOME = "The request may still be in progress: check before you repeat it."


class Failure(Struct, frozen=True):
    error: MergeyardError | Unreachable
    is_retryable: bool
    retry_after: str | None = None


def interpret_reply(response_type: type[ResponseT], reply: Reply | NoReply) -> ResponseT | Failure:
    match reply:
        case NoReply():
            return Failure(Unreachable(reply.detail), is_retryable=True)
        case Reply(status=200):
            return _decode_response(response_type, reply)
        case Reply():
            return _decode_problem(reply)
        case _:
            assert_never(reply)


def _decode_response(response_type: type[ResponseT], reply: Reply) -> ResponseT | Failure:
    try:
        if issubclass(response_type, str):
            return response_type(reply.body.decode())
        return msgspec.json.decode(reply.body, type=response_type)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return _unknown_server(reply)


def _decode_problem(reply: Reply) -> Failure:
    try:
        problem = msgspec.json.decode(reply.body, type=Problem)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return _unknown_server(reply)
    return Failure(MergeyardError(problem), problem.retryable, reply.retry_after)


def _unknown_server(reply: Reply) -> Failure:
    """The reply comes from a proxy in front of the server, or from another server."""
    is_proxy_error = reply.status >= 500
    advice = f". {UNKNOWN_OUTCOME}" if is_proxy_error else ": check the address."
    detail = f"The response with status {reply.status} is not from Mergeyard{advice}"
    return Failure(Unreachable(detail), is_proxy_error or reply.status == TOO_MANY_REQUESTS, reply.retry_after)


class ResponseBody(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A newer server can send members that are unknown here. States and codes are plain text, so new ones are accepted.

    Encoded as JSON again, it has the members that the server sent: optional members have defaults and are left out.
    """


class RepoName(Struct, frozen=True):
    host: str
    owner: str
    name: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parses `host/owner/name`; with nested groups, the owner contains slashes too."""
        host, _, rest = text.partition("/")
        owner, _, name = rest.rpartition("/")
        if not (host and owner and name):
            raise ValueError(f"{text} is not the name of a repository: write host/owner/name.")
        return cls(host.lower(), owner, name)

    def __str__(self) -> str:
        return f"{self.host}/{self.owner}/{self.name}"


class QueueName(Struct, frozen=True):
    """A queue is identified by its repository and its target branch."""

    repo: RepoName
    target_branch: str

    @classmethod
    def of(cls, repo: str, branch: str) -> Self:
        """`QueueName.of("github.com/acme/app", "main")`."""
        return cls(RepoName.parse(repo), branch)

    @property
    def members(self) -> dict[str, Any]:
        """The members of a request that identify the queue."""
        return {"repo": self.repo, "targetBranch": self.target_branch}

    def __str__(self) -> str:
        return f"{self.target_branch} of {self.repo}"
