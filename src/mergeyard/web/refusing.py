"""Says in words why a page or an action was refused, and what to do about it."""

from http import HTTPStatus
from secrets import token_hex

from msgspec import Struct
from starlette.exceptions import HTTPException

from mergeyard.ports.git import GitTrouble
from mergeyard.ports.host import HostTrouble, Unreadable
from mergeyard.ports.store import StoreTrouble
from mergeyard.service.errors import Code, Refused
from mergeyard.web.visiting import Forbidden

STATUSES = {
    Code.NOT_FOUND: 404,
    Code.QUEUE_NOT_FOUND: 404,
    Code.PR_NOT_FOUND: 404,
    Code.PR_NOT_SUBMITTED: 404,
    Code.TEST_RUN_NOT_FOUND: 404,
    Code.REPOSITORY_NOT_FOUND: 404,
    Code.WEBHOOK_NOT_FOUND: 404,
    Code.EVENT_NOT_FOUND: 404,
    Code.INVALID_REQUEST: 400,
    Code.INVALID_STRING: 400,
    Code.INVALID_REPO: 404,
    Code.INVALID_BRANCH: 404,
    Code.HOST_NOT_ALLOWED: 404,
    Code.INSUFFICIENT_SCOPE: 403,
    Code.BODY_TOO_LARGE: 413,
    Code.REQUEST_TIMEOUT: 408,
    Code.METHOD_NOT_ALLOWED: 405,
    Code.BRANCH_NOT_FOUND: 422,
    Code.INTERNAL_ERROR: 500,
    Code.PROVIDER_ERROR: 502,
    Code.PROVIDER_UNAVAILABLE: 503,
    Code.STORAGE_UNAVAILABLE: 503,
}
"""Whatever is not among them met a state in which it cannot be done."""
CONFLICT = 409
TITLES = {
    400: "That did not work",
    403: "You may not do this",
    404: "Nothing is here",
    405: "That is not how it is done",
    409: "Not now",
    500: "Something went wrong here",
    502: "The Git provider tells nonsense",
    503: "Not reachable right now",
}


class InWords(Struct, frozen=True):
    code: Code
    status: int
    title: str
    detail: str
    request_id: str


def refused_in_words(trouble: Exception) -> InWords:
    refused = _as_refused(trouble)
    status = STATUSES.get(refused.code, CONFLICT)
    title = TITLES.get(status) or HTTPStatus(status).phrase
    return InWords(refused.code, status, title, refused.detail, token_hex(8))


def _as_refused(trouble: Exception) -> Refused:
    match trouble:
        case Refused():
            return trouble
        case Forbidden():
            words = f"Your token lacks the scope “{trouble.scope}”. Sign in with one that has it, or ask for one."
            return Refused(Code.INSUFFICIENT_SCOPE, words)
        case HTTPException(status_code=405):
            return Refused(Code.METHOD_NOT_ALLOWED, "This address takes something else. Go back and try again.")
        case HTTPException():
            return Refused(Code.NOT_FOUND, "Nothing is at this address. Perhaps it was deleted, or the link is old.")
        case StoreTrouble():
            return Refused(Code.STORAGE_UNAVAILABLE, "The database cannot be reached; nothing changed. Try again soon.")
        case Unreadable():
            return Refused(Code.PROVIDER_ERROR, f"The Git provider tells nonsense: {trouble}.")
        case HostTrouble() | GitTrouble():
            return Refused(Code.PROVIDER_UNAVAILABLE, "The Git provider does not answer. Try again soon.")
        case _:
            words = "Try again, and if it stays, tell your administrator the number below."
            return Refused(Code.INTERNAL_ERROR, words)
