"""What every forge of the stories can do, and what can be seen there."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from mergeyard.domain.ids import Sha
from mergeyard.domain.statuses import StatusState
from mergeyard.ports.clock import Clock
from mergeyard.settings import ForgeHost
from tests.support.forges.deliveries import Deliveries
from tests.support.forges.faults import Faults
from tests.support.forges.git_rooms import GitRooms
from tests.support.repositories import Files, Origin

US = "mergeyard-bot"
SECRET = "between us"
STRANGER = "eve"
MAINTAINER = "grace"


FINE = "fine"
NOT_FINE = "not fine"
SIGNS = {"rocket": FINE, "+1": FINE, "confused": NOT_FINE, "-1": NOT_FINE}


class Said(Struct, frozen=True, kw_only=True):
    """A comment."""

    author: str
    text: str
    signs: tuple[str, ...]
    """How we reacted to it."""


class Shown(Struct, frozen=True, kw_only=True):
    """A status of ours, as people see it."""

    state: str
    url: str
    description: str


class Paths(Struct, frozen=True, kw_only=True):
    """Patterns of addresses, for faults."""

    api: str
    pull: str
    """Of the first pull request, itself."""
    merge: str
    comments: str
    reactions: str
    statuses: str
    """Where the checks of commits are read."""
    drafts: str
    git: str = r"\.git/"
    push: str = r"/git-receive-pack$"


class MeetingPlace(Protocol):
    """`acme/app` on a forge. Ada may write there, and so may we; Grace maintains it; a stranger may only speak."""

    @property
    def settings(self) -> ForgeHost: ...
    @property
    def origin(self) -> Origin: ...
    @property
    def deliveries(self) -> Deliveries: ...
    @property
    def faults(self) -> Faults: ...
    @property
    def rooms(self) -> GitRooms: ...
    @property
    def paths(self) -> Paths: ...
    @property
    def word(self) -> str:
        """How commands begin, which the forge does not take for its own."""
        ...

    def tell(self, address: str) -> None:
        """Of everything, by webhook."""
        ...

    def close(self) -> None: ...

    # What people do.

    def open(self, number: int, files: Files, upon: str) -> None:
        """A pull request of the branch `feature<number>`; the numbers must come in order."""
        ...

    def open_fork(self, number: int, files: Files) -> None:
        """The same, of somebody else's repository."""
        ...

    def make_draft(self, number: int) -> None: ...

    def make_ready(self, number: int) -> None: ...

    def push(self, number: int, files: Files) -> Sha: ...

    def push_to_main(self, files: Files) -> Sha: ...

    def merge_by_hand(self, number: int) -> None: ...

    def close_pull(self, number: int) -> None: ...

    def say(self, number: int, person: str, text: str) -> None: ...

    def delete_our_comments(self, number: int) -> None: ...

    def label(self, number: int, label: str) -> None: ...

    def unlabel(self, number: int, label: str) -> None: ...

    # What CI says.

    def report(self, sha: Sha, check: str, state: StatusState, url: str = "") -> None:
        """As a status of the commit."""
        ...

    def run_check(self, sha: Sha, check: str, url: str) -> None:
        """One that belongs to a suite, and passed."""
        ...

    # What the forge thinks.

    def ponder(self, number: int) -> None:
        """Nobody knows yet whether it can be merged."""
        ...

    def decide(self, number: int) -> None: ...

    def protect_main(self) -> str:
        """Something must pass before anything is merged: the name of that."""
        ...

    def satisfy(self, sha: Sha) -> None:
        """What protects main passes on this commit."""
        ...

    # What there is to see.

    def head(self, number: int) -> Sha: ...

    def is_open(self, number: int) -> bool: ...

    def is_merged(self, number: int) -> bool: ...

    def labels(self, number: int) -> list[str]: ...

    def said(self, number: int) -> list[Said]: ...

    def shown(self, sha: Sha) -> Shown | None:
        """Our status on a commit."""
        ...

    def drafts(self) -> dict[str, bool]:
        """Pull requests that show test branches, by branch, and whether they are open."""
        ...


MakePlace = Callable[[Path, Clock], MeetingPlace]
