"""Every refusal on the wire: which status and title a code has, and whether asking again may help."""

from collections.abc import Sequence

from msgspec import Struct

from mergeyard.service.errors import Code, Refused


class Kind(Struct, frozen=True):
    status: int
    title: str
    retryable: bool = False


class Flaw(Struct, frozen=True):
    """One place in the request that does not fit."""

    pointer: str
    message: str


class ApiError(Refused):
    """A refusal by the door itself, before the service was asked."""

    def __init__(
        self, code: Code, detail: str, *, errors: Sequence[Flaw] = (), headers: Sequence[tuple[bytes, bytes]] = ()
    ) -> None:
        super().__init__(code, detail)
        self.errors = tuple(errors)
        self.headers = tuple(headers)


KINDS: dict[Code, Kind] = {
    Code.INVALID_JSON: Kind(400, "Body is not JSON"),
    Code.DUPLICATE_KEY: Kind(400, "Key stands twice"),
    Code.JSON_TOO_DEEP: Kind(400, "JSON is nested too deep"),
    Code.JSON_TOO_COMPLEX: Kind(400, "JSON has too many parts"),
    Code.INVALID_STRING: Kind(400, "String is not text"),
    Code.INVALID_REQUEST: Kind(400, "Request does not fit"),
    Code.UNKNOWN_FIELD: Kind(400, "Field is not known"),
    Code.INVALID_REPO: Kind(400, "Repository name is not valid"),
    Code.INVALID_BRANCH: Kind(400, "Branch name is not valid"),
    Code.HOST_NOT_ALLOWED: Kind(400, "Host is not configured"),
    Code.ADDRESS_NOT_ALLOWED: Kind(400, "Address is not allowed"),
    Code.MISSING_TOKEN: Kind(401, "Token is missing"),
    Code.INVALID_TOKEN: Kind(401, "Token is not valid"),
    Code.INSUFFICIENT_SCOPE: Kind(403, "Token lacks the scope"),
    Code.NOT_FOUND: Kind(404, "No such address"),
    Code.QUEUE_NOT_FOUND: Kind(404, "Queue not found"),
    Code.PR_NOT_FOUND: Kind(404, "Pull request not found"),
    Code.PR_NOT_SUBMITTED: Kind(404, "Pull request was not submitted"),
    Code.TEST_RUN_NOT_FOUND: Kind(404, "Test run not found"),
    Code.REPOSITORY_NOT_FOUND: Kind(404, "Repository not found"),
    Code.WEBHOOK_NOT_FOUND: Kind(404, "Webhook not found"),
    Code.EVENT_NOT_FOUND: Kind(404, "Event not found"),
    Code.METHOD_NOT_ALLOWED: Kind(405, "Method is not allowed"),
    Code.REQUEST_TIMEOUT: Kind(408, "Request took too long to arrive", retryable=True),
    Code.BODY_TOO_LARGE: Kind(413, "Body is too large"),
    Code.URI_TOO_LONG: Kind(414, "Address is too long"),
    Code.UNSUPPORTED_MEDIA_TYPE: Kind(415, "Media type is not supported"),
    Code.HEADERS_TOO_LARGE: Kind(431, "Headers are too large"),
    Code.QUEUE_ALREADY_EXISTS: Kind(409, "Queue already exists"),
    Code.QUEUE_NOT_EMPTY: Kind(409, "Queue is not empty"),
    Code.PR_ALREADY_MERGED: Kind(409, "Pull request is already merged"),
    Code.PR_CLOSED: Kind(409, "Pull request is closed"),
    Code.PR_NOT_IN_QUEUE: Kind(409, "Pull request is not in the queue"),
    Code.MERGE_IN_PROGRESS: Kind(409, "Merge is in progress", retryable=True),
    Code.TESTS_NOT_RUNNING: Kind(409, "Tests are not running"),
    Code.SHA_MISMATCH: Kind(409, "Head is another commit"),
    Code.SHA_REQUIRED: Kind(409, "Head must be named"),
    Code.MODE_SWITCH_IN_PROGRESS: Kind(409, "Mode is being switched", retryable=True),
    Code.IDEMPOTENCY_KEY_REUSED: Kind(422, "Idempotency key was used before"),
    Code.BRANCH_NOT_FOUND: Kind(422, "Branch not found"),
    Code.COMMIT_NOT_FOUND: Kind(422, "Commit not found"),
    Code.RATE_LIMITED: Kind(429, "Too many requests", retryable=True),
    Code.INTERNAL_ERROR: Kind(500, "Internal error", retryable=True),
    Code.PROVIDER_ERROR: Kind(502, "Git provider failed", retryable=True),
    Code.PROVIDER_UNAVAILABLE: Kind(503, "Git provider is unavailable", retryable=True),
    Code.STORAGE_UNAVAILABLE: Kind(503, "Storage is unavailable", retryable=True),
    Code.PROVIDER_TIMEOUT: Kind(504, "Git provider did not answer in time", retryable=True),
}


ADVICE = {
    Code.INVALID_REPO: "Name the repository as its host does.",
    Code.INVALID_BRANCH: "Name a branch that pull requests are merged into.",
}


def misfit(pointer: str, message: str, code: Code = Code.INVALID_REQUEST) -> ApiError:
    """The refusal of a request one place of which does not fit."""
    place = f"`{pointer}`" if pointer else "The request does not fit"
    advice = ADVICE.get(code, "Correct it and send the request again.")
    return ApiError(code, f"{place}: {message}. {advice}", errors=(Flaw(pointer, message),))
