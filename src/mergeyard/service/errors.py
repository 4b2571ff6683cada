"""Error codes of refused requests, and the exception that carries a code and a message."""

from enum import StrEnum

from mergeyard.domain.ids import PullRequestNumber, QueueKey
from mergeyard.domain.states import Refusal


class Code(StrEnum):
    INVALID_JSON = "invalid_json"
    INVALID_REQUEST = "invalid_request"
    UNKNOWN_FIELD = "unknown_field"
    INVALID_REPO = "invalid_repo"
    INVALID_BRANCH = "invalid_branch"
    HOST_NOT_ALLOWED = "host_not_allowed"
    ADDRESS_NOT_ALLOWED = "address_not_allowed"
    MISSING_TOKEN = "missing_token"
    INVALID_TOKEN = "invalid_token"
    INSUFFICIENT_SCOPE = "insufficient_scope"
    NOT_FOUND = "not_found"
    QUEUE_NOT_FOUND = "queue_not_found"
    PR_NOT_FOUND = "pr_not_found"
    PR_NOT_SUBMITTED = "pr_not_submitted"
    TEST_RUN_NOT_FOUND = "test_run_not_found"
    REPOSITORY_NOT_FOUND = "repository_not_found"
    WEBHOOK_NOT_FOUND = "webhook_not_found"
    EVENT_NOT_FOUND = "event_not_found"
    TOKEN_NOT_FOUND = "token_not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    REQUEST_TIMEOUT = "request_timeout"
    BODY_TOO_LARGE = "body_too_large"
    UNSUPPORTED_MEDIA_TYPE = "unsupported_media_type"
    HEADERS_TOO_LARGE = "headers_too_large"
    QUEUE_ALREADY_EXISTS = "queue_already_exists"
    QUEUE_NOT_EMPTY = "queue_not_empty"
    PR_ALREADY_MERGED = "pr_already_merged"
    PR_CLOSED = "pr_closed"
    PR_NOT_IN_QUEUE = "pr_not_in_queue"
    MERGE_IN_PROGRESS = "merge_in_progress"
    SHA_MISMATCH = "sha_mismatch"
    SHA_REQUIRED = "sha_required"
    MODE_SWITCH_IN_PROGRESS = "mode_switch_in_progress"
    IDEMPOTENCY_KEY_REUSED = "idempotency_key_reused"
    BRANCH_NOT_FOUND = "branch_not_found"
    COMMIT_NOT_FOUND = "commit_not_found"
    RATE_LIMITED = "rate_limited"
    INTERNAL_ERROR = "internal_error"
    PROVIDER_ERROR = "provider_error"
    PROVIDER_UNAVAILABLE = "provider_unavailable"
    STORAGE_UNAVAILABLE = "storage_unavailable"
    PROVIDER_TIMEOUT = "provider_timeout"


class RequestRefused(Exception):
    """A request was refused and changed nothing. `detail` says what is wrong, then what to do.

    The API, the pages and the commands show the same `detail`. So it names what the user can do, but no endpoint, no
    member of a request, no page and no command.
    """

    def __init__(self, code: Code, detail: str, *, retry_after: int | None = None) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.retry_after = retry_after
        """Seconds, for the header `Retry-After`."""


REFUSAL_MESSAGES: dict[Refusal, tuple[Code, str]] = {
    Refusal.PR_NOT_SUBMITTED: (Code.PR_NOT_SUBMITTED, "was never submitted to the queue: submit it first."),
    Refusal.PR_ALREADY_MERGED: (Code.PR_ALREADY_MERGED, "is already merged: there is nothing left to do."),
    Refusal.PR_CLOSED: (Code.PR_CLOSED, "is closed: reopen it, then submit it."),
    Refusal.MERGE_IN_PROGRESS: (Code.MERGE_IN_PROGRESS, "is being merged: wait for the result."),
}


def pull_request_refused(refusal: Refusal, number: PullRequestNumber) -> RequestRefused:
    code, message = REFUSAL_MESSAGES[refusal]
    return RequestRefused(code, f"Pull request {number} {message}")


def queue_not_found(key: QueueKey) -> RequestRefused:
    return RequestRefused(Code.QUEUE_NOT_FOUND, f"There is no queue for {key}: check the names, or create it.")


def pull_request_not_found(key: QueueKey, number: PullRequestNumber) -> RequestRefused:
    return RequestRefused(Code.PR_NOT_FOUND, f"{key.repo} has no pull request {number}: check the number.")
