"""What a client knows for sure of its queues, from what it asked for and what it was answered."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from mergeyard.domain.tokens import DEFAULT_SCOPES, Scope

TERMINAL = {"merged", "failed", "cancelled"}
NEEDED = {
    "createQueue": Scope.ADMIN,
    "updateQueue": Scope.ADMIN,
    "deleteQueue": Scope.ADMIN,
    "submitPullRequest": Scope.SUBMIT,
    "cancelPullRequest": Scope.SUBMIT,
    "restartTestsOnPullRequest": Scope.SUBMIT,
    "setImpactedTargets": Scope.TARGETS,
    "reportCommitStatus": Scope.STATUS,
}
"""All others need to read."""
WITHOUT_A_QUEUE = {"createQueue", "reportCommitStatus"}
"""What lies outside for these is a repository."""


URGENT = (0, "URGENT")


class Person(Struct, frozen=True):
    """Somebody with a token, and what it is good for."""

    scopes: frozenset[Scope]
    place: str | None = None
    """The only repository that it reaches."""
    valid: bool = True

    def may(self, scope: Scope) -> bool:
        return scope in self.scopes or Scope.ADMIN in self.scopes


PEOPLE = {
    "operator": Person(frozenset({Scope.ADMIN})),
    "reader": Person(frozenset({Scope.READ})),
    "author": Person(DEFAULT_SCOPES, "here"),
    "ci": Person(frozenset({Scope.STATUS})),
    "stranger": Person(frozenset({Scope.ADMIN}), "there"),
    "former": Person(frozenset({Scope.ADMIN}), valid=False),
}


class Stay(Struct):
    id: str
    number: int
    state: str = "not_ready"
    merged_sha: str | None = None
    cancelled: bool = False
    """Somebody cancelled it, and was answered with 200."""

    @property
    def ended(self) -> bool:
        return self.state in TERMINAL


class QueueModel(Struct):
    exists: bool = False
    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    """Those that somebody set, as they were answered."""
    stays: list[Stay] = field(default_factory=list[Stay])
    """In the order in which they were accepted."""
    resting_at: str | None = None
    """Where its branch was when a pause was answered; None while it is not paused."""

    def last(self, number: int) -> Stay | None:
        return next((stay for stay in reversed(self.stays) if stay.number == number), None)

    def active(self, number: int) -> Stay | None:
        last = self.last(number)
        return last if last is not None and not last.ended else None

    def forget(self) -> None:
        self.exists, self.settings, self.stays, self.resting_at = False, {}, [], None


class Pull(Struct):
    """A pull request at the host."""

    head: str
    state: str = "open"
    draft: bool = False
    touched: bool = False
    """Nobody has looked at it since it was changed there."""


def refusal(person: Person, endpoint: str, place: str, wish: Mapping[str, Any] | None = None) -> str | None:
    """What a token is refused with, before anything is looked up."""
    if not person.valid:
        return "invalid_token"
    urgent = wish is not None and wish.get("priority") in URGENT
    if not person.may(NEEDED.get(endpoint, Scope.READ)) or (urgent and not person.may(Scope.PRIORITY)):
        return "insufficient_scope"
    if person.place not in (None, place):
        return "repository_not_found" if endpoint in WITHOUT_A_QUEUE else "queue_not_found"
    return None
