"""A model of the queues: what a client knows from its requests and their responses."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from mergeyard.domain.access import DEFAULT_SCOPES, Scope

TERMINAL = {"merged", "failed", "cancelled"}
REQUIRED_SCOPES = {
    "createQueue": Scope.ADMIN,
    "updateQueue": Scope.ADMIN,
    "deleteQueue": Scope.ADMIN,
    "submitPullRequest": Scope.SUBMIT,
    "cancelPullRequest": Scope.SUBMIT,
    "restartTestsOnPullRequest": Scope.SUBMIT,
    "setImpactedTargets": Scope.TARGETS,
    "reportCommitStatus": Scope.STATUS,
}
"""All other endpoints need the scope `read`."""
WITHOUT_A_QUEUE = {"createQueue", "reportCommitStatus"}
"""Outside of a token's repositories, these name a missing repository, the others a missing queue."""

URGENT = (0, "URGENT")


class TokenOwner(Struct, frozen=True):
    """A user with a token."""

    scopes: frozenset[Scope]
    repository: str | None = None
    """The only repository that the token covers; None for all."""
    valid: bool = True

    def has_scope(self, scope: Scope) -> bool:
        return scope in self.scopes or Scope.ADMIN in self.scopes


USERS = {
    "operator": TokenOwner(frozenset({Scope.ADMIN})),
    "reader": TokenOwner(frozenset({Scope.READ})),
    "author": TokenOwner(DEFAULT_SCOPES, "here"),
    "ci": TokenOwner(frozenset({Scope.STATUS})),
    "stranger": TokenOwner(frozenset({Scope.ADMIN}), "there"),
    "former": TokenOwner(frozenset({Scope.ADMIN}), valid=False),
}


class SubmissionModel(Struct):
    id: str
    number: int
    state: str = "not_ready"
    merged_sha: str | None = None
    cancelled: bool = False
    """A request to cancel it was answered with 200."""

    @property
    def ended(self) -> bool:
        return self.state in TERMINAL


class QueueModel(Struct):
    exists: bool = False
    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    """The settings that were changed."""
    submissions: list[SubmissionModel] = field(default_factory=list[SubmissionModel])
    """In the order in which they were accepted."""
    paused_at: str | None = None
    """The tip of its branch when it was paused; None while it is not paused."""

    def last(self, number: int) -> SubmissionModel | None:
        return next((submission for submission in reversed(self.submissions) if submission.number == number), None)

    def active(self, number: int) -> SubmissionModel | None:
        last = self.last(number)
        return last if last is not None and not last.ended else None

    def forget(self) -> None:
        self.exists, self.settings, self.submissions, self.paused_at = False, {}, [], None


class PullRequestModel(Struct):
    """A pull request on the Git host."""

    head: str
    state: str = "open"
    draft: bool = False
    touched: bool = False
    """The service has not read it since it was changed there."""


def expected_refusal(
    person: TokenOwner, endpoint: str, place: str, options: Mapping[str, Any] | None = None
) -> str | None:
    """The error code for a token, before anything is looked up; None if it is allowed."""
    if not person.valid:
        return "invalid_token"
    urgent = options is not None and options.get("priority") in URGENT
    if not person.has_scope(REQUIRED_SCOPES.get(endpoint, Scope.READ)) or (
        urgent and not person.has_scope(Scope.PRIORITY)
    ):
        return "insufficient_scope"
    if person.repository not in (None, place):
        return "repository_not_found" if endpoint in WITHOUT_A_QUEUE else "queue_not_found"
    return None
