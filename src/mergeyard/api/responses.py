"""The HTTP response as a value (status, headers, body), also for a refused request."""

from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from http import HTTPStatus
from typing import Any

from msgspec import Struct, json

from mergeyard.service.errors import Code, RequestRefused


class ErrorKind(Struct, frozen=True):
    status: int
    title: str
    retryable: bool = False


class ValidationIssue(Struct, frozen=True):
    """One invalid place in the request, as a JSON pointer."""

    pointer: str
    message: str


class ApiError(RequestRefused):
    """A refusal by the API layer itself, before the service is called."""

    def __init__(
        self,
        code: Code,
        detail: str,
        *,
        errors: Sequence[ValidationIssue] = (),
        headers: Sequence[tuple[bytes, bytes]] = (),
    ) -> None:
        super().__init__(code, detail)
        self.errors = tuple(errors)
        self.headers = tuple(headers)


ERROR_KINDS: dict[Code, ErrorKind] = {
    Code.INVALID_JSON: ErrorKind(400, "Body is not valid JSON"),
    Code.DUPLICATE_KEY: ErrorKind(400, "Duplicate key"),
    Code.JSON_TOO_DEEP: ErrorKind(400, "JSON is nested too deeply"),
    Code.JSON_TOO_COMPLEX: ErrorKind(400, "JSON has too many parts"),
    Code.INVALID_STRING: ErrorKind(400, "String is not valid Unicode text"),
    Code.INVALID_REQUEST: ErrorKind(400, "Request is not valid"),
    Code.UNKNOWN_FIELD: ErrorKind(400, "Unknown field"),
    Code.INVALID_REPO: ErrorKind(400, "Repository name is not valid"),
    Code.INVALID_BRANCH: ErrorKind(400, "Branch name is not valid"),
    Code.HOST_NOT_ALLOWED: ErrorKind(400, "Host is not configured"),
    Code.ADDRESS_NOT_ALLOWED: ErrorKind(400, "Address is not allowed"),
    Code.MISSING_TOKEN: ErrorKind(401, "Token is missing"),
    Code.INVALID_TOKEN: ErrorKind(401, "Token is not valid"),
    Code.INSUFFICIENT_SCOPE: ErrorKind(403, "Token lacks the scope"),
    Code.NOT_FOUND: ErrorKind(404, "Address not found"),
    Code.QUEUE_NOT_FOUND: ErrorKind(404, "Queue not found"),
    Code.PR_NOT_FOUND: ErrorKind(404, "Pull request not found"),
    Code.PR_NOT_SUBMITTED: ErrorKind(404, "Pull request was not submitted"),
    Code.TEST_RUN_NOT_FOUND: ErrorKind(404, "Test run not found"),
    Code.REPOSITORY_NOT_FOUND: ErrorKind(404, "Repository not found"),
    Code.WEBHOOK_NOT_FOUND: ErrorKind(404, "Webhook not found"),
    Code.EVENT_NOT_FOUND: ErrorKind(404, "Event not found"),
    Code.METHOD_NOT_ALLOWED: ErrorKind(405, "Method is not allowed"),
    Code.REQUEST_TIMEOUT: ErrorKind(408, "Request took too long to arrive", retryable=True),
    Code.BODY_TOO_LARGE: ErrorKind(413, "Body is too large"),
    Code.URI_TOO_LONG: ErrorKind(414, "Address is too long"),
    Code.UNSUPPORTED_MEDIA_TYPE: ErrorKind(415, "Media type is not supported"),
    Code.HEADERS_TOO_LARGE: ErrorKind(431, "Headers are too large"),
    Code.QUEUE_ALREADY_EXISTS: ErrorKind(409, "Queue already exists"),
    Code.QUEUE_NOT_EMPTY: ErrorKind(409, "Queue is not empty"),
    Code.PR_ALREADY_MERGED: ErrorKind(409, "Pull request is already merged"),
    Code.PR_CLOSED: ErrorKind(409, "Pull request is closed"),
    Code.PR_NOT_IN_QUEUE: ErrorKind(409, "Pull request is not in the queue"),
    Code.MERGE_IN_PROGRESS: ErrorKind(409, "Merge is in progress", retryable=True),
    Code.TESTS_NOT_RUNNING: ErrorKind(409, "Tests are not running"),
    Code.SHA_MISMATCH: ErrorKind(409, "Head commit does not match"),
    Code.SHA_REQUIRED: ErrorKind(409, "Head commit is required"),
    Code.MODE_SWITCH_IN_PROGRESS: ErrorKind(409, "Mode switch is in progress", retryable=True),
    Code.IDEMPOTENCY_KEY_REUSED: ErrorKind(422, "Idempotency key was used for another request"),
    Code.BRANCH_NOT_FOUND: ErrorKind(422, "Branch not found"),
    Code.COMMIT_NOT_FOUND: ErrorKind(422, "Commit not found"),
    Code.RATE_LIMITED: ErrorKind(429, "Too many requests", retryable=True),
    Code.INTERNAL_ERROR: ErrorKind(500, "Internal error", retryable=True),
    Code.PROVIDER_ERROR: ErrorKind(502, "Unexpected response from the Git host", retryable=True),
    Code.PROVIDER_UNAVAILABLE: ErrorKind(503, "Git host is unavailable", retryable=True),
    Code.STORAGE_UNAVAILABLE: ErrorKind(503, "Storage is unavailable", retryable=True),
    Code.PROVIDER_TIMEOUT: ErrorKind(504, "Git host did not respond in time", retryable=True),
}


ADVICE_BY_CODE = {
    Code.INVALID_REPO: "Use the repository's name on its Git host.",
    Code.INVALID_BRANCH: "Name the branch that pull requests are merged into.",
}


def invalid_request(pointer: str, message: str, code: Code = Code.INVALID_REQUEST) -> ApiError:
    """The error for a request with one invalid member; an empty pointer means the whole request."""
    subject = f"`{pointer}`" if pointer else "The request is not valid"
    advice = ADVICE_BY_CODE.get(code, "Correct it and send the request again.")
    return ApiError(code, f"{subject}: {message}. {advice}", errors=(ValidationIssue(pointer, message),))


Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

JSON = b"application/json"
PROBLEM = b"application/problem+json"
DEFAULT_RETRY_AFTER_S = {Code.RATE_LIMITED: 1, Code.PROVIDER_UNAVAILABLE: 5, Code.STORAGE_UNAVAILABLE: 5}
"""`Retry-After` in seconds, unless the refusal carries its own."""

STATUS_LINES = {status.value: b"HTTP/1.1 %d %b\r\n" % (status, status.phrase.encode()) for status in HTTPStatus}


class Reply(Struct, frozen=True):
    body: bytes
    status: int = 200
    content_type: bytes = JSON
    headers: tuple[tuple[bytes, bytes], ...] = ()


class Problem(Struct, frozen=True, kw_only=True, rename="camel"):
    """The body of every error, with the members of RFC 9457."""

    type: str = "about:blank"
    title: str
    status: int
    code: Code
    detail: str
    request_id: str
    retryable: bool
    errors: tuple[ValidationIssue, ...] = ()


def build_error_reply(refused: RequestRefused, request_id: str, accept: bytes = b"") -> Reply:
    kind = ERROR_KINDS[refused.code]
    problem = Problem(
        title=kind.title,
        status=kind.status,
        code=refused.code,
        detail=refused.detail,
        request_id=request_id,
        retryable=kind.retryable,
        errors=refused.errors if isinstance(refused, ApiError) else (),
    )
    content_type = PROBLEM if PROBLEM in accept.lower() else JSON
    return Reply(json.encode(problem), kind.status, content_type, (*_retry_after(refused), *_headers(refused)))


def _headers(refused: RequestRefused) -> tuple[tuple[bytes, bytes], ...]:
    return refused.headers if isinstance(refused, ApiError) else ()


def _retry_after(refused: RequestRefused) -> tuple[tuple[bytes, bytes], ...]:
    seconds = DEFAULT_RETRY_AFTER_S.get(refused.code) if refused.retry_after is None else refused.retry_after
    return () if seconds is None else ((b"retry-after", b"%d" % seconds),)


async def send_reply(send: Send, reply: Reply, request_id: str) -> None:
    await send_head(send, reply, request_id)
    await send({"type": "http.response.body", "body": reply.body})


async def send_head(send: Send, reply: Reply, request_id: str) -> None:
    headers = [
        (b"content-type", reply.content_type),
        (b"content-length", b"%d" % len(reply.body)),
        (b"x-request-id", request_id.encode()),
        *reply.headers,
    ]
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})


def encode_reply(reply: Reply, request_id: str, *headers: tuple[bytes, bytes]) -> bytes:
    """The complete response as bytes, with `headers` in addition to its own."""
    all_headers = (
        *headers,
        (b"content-type", reply.content_type),
        (b"content-length", b"%d" % len(reply.body)),
        (b"x-request-id", request_id.encode()),
        *reply.headers,
    )
    lines = b"".join([b"%b: %b\r\n" % header for header in all_headers])
    return b"%b%b\r\n%b" % (STATUS_LINES[reply.status], lines, reply.body)
