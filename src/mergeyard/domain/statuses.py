"""What a CI says about a commit, one status per context, and whether that passes."""

from enum import StrEnum

from msgspec import Struct

from mergeyard.domain.instants import Instant
from mergeyard.domain.states import CheckState


class StatusState(StrEnum):
    PENDING = "pending"
    SUCCESS = "success"
    SKIPPED = "skipped"
    NEUTRAL = "neutral"
    FAILURE = "failure"
    ERROR = "error"


class Status(Struct, frozen=True, kw_only=True):
    context: str
    state: StatusState
    at: Instant
    url: str = ""
    """Empty: the reporter named no page, and ours is shown."""
    description: str = ""
    suite: str = ""
    """The suite of checks that it belongs to; empty for a plain status."""

    @property
    def check(self) -> CheckState:
        return CHECKS[self.state]


CHECKS = {
    StatusState.PENDING: CheckState.PENDING,
    StatusState.SUCCESS: CheckState.PASSED,
    StatusState.SKIPPED: CheckState.NEUTRAL,
    StatusState.NEUTRAL: CheckState.NEUTRAL,
    StatusState.FAILURE: CheckState.FAILED,
    StatusState.ERROR: CheckState.FAILED,
}
