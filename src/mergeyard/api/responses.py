"""Error responses: the status and title of each code, the JSON body, and the exceptions that lead to them."""

from collections.abc import Mapping, Sequence
from typing import Annotated

import structlog
from msgspec import Meta, Struct, json
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from mergeyard.domain.timestamps import format_clock
from mergeyard.ports.forge import HostAccessLost, HostError, HostRefused, RateLimited, UnexpectedHostResponse
from mergeyard.ports.git import GitError, RemoteRefused, RemoteUnavailable, RemoteUnsupported
from mergeyard.ports.store import StoreUnavailable
from mergeyard.service.errors import Code, RequestRefused

log = structlog.get_logger()


class ErrorKind(Struct, frozen=True):
    status: int
    title: str
    retryable: bool = False


class FieldError(Struct, frozen=True):
    """One invalid place in the request."""

    pointer: Annotated[str, Meta(description="JSON pointer to the place, such as `/pr/number`.")]
    message: Annotated[str, Meta(description="What is wrong there.")]


class ApiError(RequestRefused):
    """A refusal by the API layer itself, before the service is called."""

    def __init__(
        self,
        code: Code,
        detail: str,
        *,
        errors: Sequence[FieldError] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(code, detail)
        self.errors = tuple(errors)
        self.headers = headers or {}


ERROR_KINDS: dict[Code, ErrorKind] = {
    Code.INVALID_JSON: ErrorKind(400, "Body is not valid JSON"),
    Code.INVALID_REQUEST: ErrorKind(400, "Request is not valid"),
    Code.UNKNOWN_FIELD: ErrorKind(400, "Unknown field"),
    Code.INVALID_REPO: ErrorKind(400, "Repository name is not valid"),
    Code.INVALID_BRANCH: ErrorKind(400, "Branch name is not valid"),
    Code.HOST_NOT_ALLOWED: ErrorKind(400, "Git host is not configured"),
    Code.ADDRESS_NOT_ALLOWED: ErrorKind(400, "Address is not allowed"),
    Code.MISSING_TOKEN: ErrorKind(401, "Token is missing"),
    Code.INVALID_TOKEN: ErrorKind(401, "Token is not valid"),
    Code.INSUFFICIENT_SCOPE: ErrorKind(403, "Token does not allow this"),
    Code.NOT_FOUND: ErrorKind(404, "Address not found"),
    Code.QUEUE_NOT_FOUND: ErrorKind(404, "Queue not found"),
    Code.PR_NOT_FOUND: ErrorKind(404, "Pull request not found"),
    Code.PR_NOT_SUBMITTED: ErrorKind(404, "Pull request was not submitted"),
    Code.TEST_RUN_NOT_FOUND: ErrorKind(404, "Test run not found"),
    Code.REPOSITORY_NOT_FOUND: ErrorKind(404, "Repository not found"),
    Code.WEBHOOK_NOT_FOUND: ErrorKind(404, "Webhook not found"),
    Code.EVENT_NOT_FOUND: ErrorKind(404, "Event not found"),
    Code.TOKEN_NOT_FOUND: ErrorKind(404, "Token not found"),
    Code.METHOD_NOT_ALLOWED: ErrorKind(405, "Method is not allowed"),
    Code.REQUEST_TIMEOUT: ErrorKind(408, "Request took too long to arrive", retryable=True),
    Code.BODY_TOO_LARGE: ErrorKind(413, "Body is too large"),
    Code.UNSUPPORTED_MEDIA_TYPE: ErrorKind(415, "Media type is not supported"),
    Code.HEADERS_TOO_LARGE: ErrorKind(431, "Headers are too large"),
    Code.QUEUE_ALREADY_EXISTS: ErrorKind(409, "Queue already exists"),
    Code.QUEUE_NOT_EMPTY: ErrorKind(409, "Queue is not empty"),
    Code.PR_ALREADY_MERGED: ErrorKind(409, "Pull request is already merged"),
    Code.PR_CLOSED: ErrorKind(409, "Pull request is closed"),
    Code.PR_NOT_IN_QUEUE: ErrorKind(409, "Pull request is not in the queue"),
    Code.MERGE_IN_PROGRESS: ErrorKind(409, "Merge is in progress", retryable=True),
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
    Code.STORAGE_UNAVAILABLE: ErrorKind(503, "Database is unavailable", retryable=True),
    Code.PROVIDER_TIMEOUT: ErrorKind(504, "Git host did not respond in time", retryable=True),
}


ADVICE_BY_CODE = {
    Code.INVALID_REPO: " Use the repository's name on its Git host.",
    Code.INVALID_BRANCH: " Name the branch that pull requests are merged into.",
}
"""In addition to what was expected."""


def invalid_request(pointer: str, message: str, code: Code = Code.INVALID_REQUEST) -> ApiError:
    """The error for a request with one invalid member; an empty pointer means the whole request."""
    subject = f"`{pointer}`" if pointer else "The request is not valid"
    advice = ADVICE_BY_CODE.get(code, "")
    return ApiError(code, f"{subject}: {message}.{advice}", errors=(FieldError(pointer, message),))


JSON = "application/json"
PROBLEM = "application/problem+json"
METRICS_MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
DEFAULT_RETRY_AFTER_S = {Code.RATE_LIMITED: 1, Code.PROVIDER_UNAVAILABLE: 5, Code.STORAGE_UNAVAILABLE: 5}
"""`Retry-After` in seconds, unless the refusal carries its own."""


class Problem(Struct, frozen=True, kw_only=True, rename="camel"):
    """The body of every error, with the members of RFC 9457."""

    type: Annotated[str, Meta(description="Always `about:blank`: the code identifies the error.")] = "about:blank"
    title: Annotated[str, Meta(description="The error in a few words.")]
    status: Annotated[int, Meta(description="The HTTP status.")]
    code: Annotated[Code, Meta(description="Stable: compare this one in programs.")]
    detail: Annotated[str, Meta(description="What is wrong and what to do, for a person.")]
    request_id: Annotated[str, Meta(description="The same as in the header `x-request-id`.")]
    retryable: Annotated[bool, Meta(description="Whether the same request can succeed later.")]
    errors: Annotated[tuple[FieldError, ...], Meta(description="Every invalid place in the request.")] = ()


def build_error_response(request: Request, refused: RequestRefused) -> Response:
    kind = ERROR_KINDS[refused.code]
    problem = Problem(
        title=kind.title,
        status=kind.status,
        code=refused.code,
        detail=refused.detail,
        request_id=request_id(request),
        retryable=kind.retryable,
        errors=refused.errors if isinstance(refused, ApiError) else (),
    )
    media_type = PROBLEM if PROBLEM in request.headers.get("accept", "").lower() else JSON
    return Response(json.encode(problem), kind.status, error_headers(refused), media_type)


def error_headers(refused: RequestRefused) -> dict[str, str]:
    seconds = DEFAULT_RETRY_AFTER_S.get(refused.code) if refused.retry_after is None else refused.retry_after
    retry_after = {} if seconds is None else {"retry-after": str(seconds)}
    return retry_after | dict(refused.headers if isinstance(refused, ApiError) else {})


def request_id(request: Request) -> str:
    return request.scope["state"]["request_id"]


def to_refusal(request: Request, error: Exception) -> RequestRefused:
    """The refusal that the client gets for an exception. Details go to the log only, except the Git host's text."""
    match error:
        case RequestRefused():
            return error
        case HTTPException(status_code=405):
            allowed = ", ".join(sorted(((error.headers or {}).get("Allow") or "").split(", ")))
            detail = f"The method is not allowed here: send the request with {allowed}."
            return ApiError(Code.METHOD_NOT_ALLOWED, detail, headers={"allow": allowed})
        case HTTPException():
            detail = "There is nothing at this address. Check it: the queues are at /, and /docs describes the API."
            return RequestRefused(Code.NOT_FOUND, detail)
        case StoreUnavailable():
            _log_failure("storage_unavailable", request, error)
            return RequestRefused(
                Code.STORAGE_UNAVAILABLE, "The database does not respond; nothing changed. Retry shortly."
            )
        case UnexpectedHostResponse():
            _log_failure("provider_error", request, error)
            detail = f"Unexpected response from the Git host: {error}. Retry; if it persists, check the Git host."
            return RequestRefused(Code.PROVIDER_ERROR, detail)
        case HostRefused() | HostAccessLost() | RemoteRefused():
            _log_failure("git_host_refused", request, error)
            detail = f"The Git host refuses this: {error}. An administrator has to repair the permission or the rule."
            return RequestRefused(Code.PROVIDER_ERROR, detail)
        case RateLimited():
            _log_failure("git_host_limits_requests", request, error)
            time = format_clock(error.until)
            detail = f"The Git host limits how many requests it accepts. Retry at {time}."
            return RequestRefused(Code.PROVIDER_UNAVAILABLE, detail, retry_after=error.wait_s)
        case RemoteUnsupported():
            _log_failure("git_host_refused", request, error)
            return RequestRefused(Code.PROVIDER_ERROR, f"Mergeyard cannot work with this repository: {error}")
        case HostError() | RemoteUnavailable():
            _log_failure("provider_unavailable", request, error)
            return RequestRefused(
                Code.PROVIDER_UNAVAILABLE, "The server cannot reach the repository on the Git host. Retry shortly."
            )
        case GitError():
            _log_failure("server_failure", request, error)
            detail = (
                "Git fails on this server. Retry shortly; if it persists, an operator has to check its log and disk."
            )
            return RequestRefused(Code.PROVIDER_UNAVAILABLE, detail)
        case _:
            log.error("request_failed", path=request.url.path, request_id=request_id(request), exc_info=error)
            detail = "Internal error. Retry; if it persists, report the request id to your administrator."
            return RequestRefused(Code.INTERNAL_ERROR, detail)


def _log_failure(event: str, request: Request, error: Exception) -> None:
    log.warning(event, path=request.url.path, request_id=request_id(request), error=str(error))
