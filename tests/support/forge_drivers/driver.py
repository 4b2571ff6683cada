"""The interface of the forge drivers."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from mergeyard.domain.ids import Sha
from mergeyard.domain.pull_requests import StatusState
from mergeyard.ports.external import Clock
from mergeyard.settings import ForgeHost
from tests.support.forges.deliveries import Deliveries
from tests.support.forges.faults import Faults
from tests.support.forges.git_server import GitServer
from tests.support.repositories import Files, Origin

BOT = "mergeyard-bot"
SECRET = "between us"
STRANGER = "eve"
MAINTAINER = "grace"


POSITIVE = "fine"
NEGATIVE = "not fine"
REACTIONS = {"rocket": POSITIVE, "+1": POSITIVE, "confused": NEGATIVE, "-1": NEGATIVE}


class ForgeComment(Struct, frozen=True, kw_only=True):
    """A comment."""

    author: str
    text: str
    reactions: tuple[str, ...]
    """The bot's reactions."""


class ForgeStatus(Struct, frozen=True, kw_only=True):
    """A commit status of the bot."""

    state: str
    url: str
    description: str


class ForgePaths(Struct, frozen=True, kw_only=True):
    """Path patterns, for faults."""

    api: str
    pull_request: str
    """The first pull request."""
    merge: str
    comments: str
    reactions: str
    statuses: str
    """Statuses of a commit."""
    drafts: str
    git: str = r"\.git/"
    push: str = r"/git-receive-pack$"


class ForgeDriver(Protocol):
    """`acme/app` on a forge. Ada and the bot can write, Grace maintains it, and Eve can only comment."""

    @property
    def settings(self) -> ForgeHost: ...
    @property
    def origin(self) -> Origin: ...
    @property
    def deliveries(self) -> Deliveries: ...
    @property
    def faults(self) -> Faults: ...
    @property
    def git_server(self) -> GitServer: ...
    @property
    def paths(self) -> ForgePaths: ...
    @property
    def command_prefix(self) -> str:
        """Prefix of commands that the forge does not interpret itself."""
        ...

    def add_webhook(self, url: str) -> None:
        """Subscribes the URL to all events."""
        ...

    def close(self) -> None: ...

    # Actions of users.

    def open(self, number: int, files: Files, base: str) -> None:
        """Opens a pull request of the branch `feature<number>`; numbers must be used in order."""
        ...

    def open_fork(self, number: int, files: Files) -> None:
        """Opens a pull request from a fork."""
        ...

    def allow_edits(self, number: int) -> None:
        """The author lets accounts with write access push to the branch in the fork, where the forge asks for that."""
        ...

    def retarget(self, number: int, base: str) -> None:
        """The author changes the base branch."""
        ...

    def make_draft(self, number: int) -> None: ...

    def make_ready(self, number: int) -> None: ...

    def push(self, number: int, files: Files) -> Sha: ...

    def push_to_main(self, files: Files) -> Sha: ...

    def merge_by_hand(self, number: int) -> None: ...

    def close_pull_request(self, number: int) -> None: ...

    def describe(self, number: int, text: str) -> None:
        """The author changes the description."""
        ...

    def comment(self, number: int, person: str, text: str) -> None: ...

    def edit_comment(self, number: int, text: str) -> None:
        """A user edits the last comment, which can be that of another user."""
        ...

    def delete_our_comments(self, number: int) -> None: ...

    def label(self, number: int, label: str) -> None: ...

    def unlabel(self, number: int, label: str) -> None: ...

    # Results of CI.

    def report(self, sha: Sha, check: str, state: StatusState, url: str = "") -> None:
        """Reports a commit status."""
        ...

    def run_check(self, sha: Sha, check: str, url: str) -> None:
        """Adds a passed check run or job."""
        ...

    # Mergeability and protection.

    def hide_mergeability(self, number: int) -> None:
        """The forge has not determined the mergeability."""
        ...

    def show_mergeability(self, number: int) -> None: ...

    def protect_main(self) -> str:
        """Requires a check for merges and returns its name."""
        ...

    def satisfy_protection(self, sha: Sha) -> None:
        """The check that `protect_main` requires passes on this commit."""
        ...

    # State.

    def head(self, number: int) -> Sha: ...

    def base(self, number: int) -> str: ...

    def is_open(self, number: int) -> bool: ...

    def is_merged(self, number: int) -> bool: ...

    def labels(self, number: int) -> list[str]: ...

    def comments(self, number: int) -> list[ForgeComment]: ...

    def bot_status(self, sha: Sha) -> ForgeStatus | None:
        """The bot's status on a commit."""
        ...

    def drafts(self) -> dict[str, bool]:
        """The bot's pull requests of test branches: whether each is open, by branch. They are drafts where the forge
        has drafts."""
        ...


MakeForgeDriver = Callable[[Path, Clock], ForgeDriver]
