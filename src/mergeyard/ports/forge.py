"""A host where people meet: with checks, merges, comments, labels and roles of its own.

What cannot be done now raises `HostTrouble`; whatever is asked for twice is harmless the second time.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from mergeyard.domain.config import MergeMethod
from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.instants import Instant
from mergeyard.domain.repositories import Repo
from mergeyard.domain.statuses import Status

# What is heard.


class Forged(Exception):
    """A message does not carry the signature that it should, or none is expected. Nothing of it was read."""


class PullNews(Struct, frozen=True):
    """Something happened to a pull request, its labels, or to what people say about it."""

    repo: Repo
    number: PrNumber


class BranchNews(Struct, frozen=True):
    repo: Repo
    branch: str


class CommitNews(Struct, frozen=True):
    """A check or status of this commit changed."""

    repo: Repo
    sha: Sha


News = PullNews | BranchNews | CommitNews
"""Only a reason to look: nothing of it is believed."""

# What people say.


class Comment(Struct, frozen=True, kw_only=True):
    id: str
    author: str
    text: str
    at: Instant


class Thread(Struct, frozen=True):
    """What people put on a pull request."""

    labels: frozenset[str]
    comments: tuple[Comment, ...]
    """Oldest first."""


# What becomes of a merge.


class Merged(Struct, frozen=True):
    """It is merged, by this call or an earlier one."""

    commit: Sha


class NotMerged(Struct, frozen=True):
    """Its head is another, or something has changed that must be looked at again. Nothing was merged."""

    words: str


class MergeRefused(Struct, frozen=True):
    """The host will not have this one, and will not have it later either."""

    words: str


class MergeForbidden(Struct, frozen=True):
    """The host lets us merge nothing, or not in this way: a right or a setting is missing, and nobody is to blame."""

    words: str


MergeOutcome = Merged | NotMerged | MergeRefused | MergeForbidden


class Merge(Struct, frozen=True, kw_only=True):
    """Which head is to be merged into which branch, how, and with which words."""

    number: PrNumber
    head: Sha
    base: str
    method: MergeMethod
    title: str
    message: str


class Draft(Struct, frozen=True, kw_only=True):
    """A pull request that shows a test branch, and is never merged."""

    branch: str
    base: str
    title: str
    text: str


class Finding(Struct, frozen=True):
    """One thing that is needed here, and whether it is there; if not, the words say what to do."""

    fine: bool
    words: str


class Forge(Protocol):
    def heard(self, headers: Mapping[str, str], body: bytes) -> Sequence[News]:
        """What a message of a webhook is about; the names of its headers are in lower case.

        Raises `Forged` before anything of it is read when it is not signed as it should be. Of what has nothing to
        do with us, or makes no sense, there is no news.
        """
        ...

    async def statuses(self, repo: Repo, sha: Sha, branch: str) -> Sequence[Status]:
        """Every status and every check of the commit, the latest of each name, as far as they count for this branch."""
        ...

    async def merge(self, repo: Repo, merge: Merge) -> MergeOutcome:
        """With the host's own merge: only this very head, and only into this very branch."""
        ...

    async def merged_as(self, repo: Repo, merge: Merge) -> Sha | None:
        """The commit by which this very head came into this very branch; None where it did not."""
        ...

    async def thread(self, repo: Repo, number: PrNumber, since: Instant) -> Thread:
        """Its labels, and what was said since then; what was said earlier may be among it."""
        ...

    async def may_write(self, repo: Repo, person: str, branch: str) -> bool:
        """Whether they may have pull requests merged into this branch, as far as the forge tells."""
        ...

    async def may_maintain(self, repo: Repo, person: str) -> bool:
        """Whether they may also go around its rules."""
        ...

    async def say(self, repo: Repo, number: PrNumber, text: str, comment: str | None) -> str:
        """Puts this text in the place of our comment, and tells its id: a new one, where that is none or gone."""
        ...

    async def react(self, repo: Repo, number: PrNumber, comment: str, *, fine: bool) -> None: ...

    async def unlabel(self, repo: Repo, number: PrNumber, label: str) -> None: ...

    async def show_status(self, repo: Repo, sha: Sha, status: Status) -> None:
        """As our own word on a commit."""
        ...

    async def open_draft(self, repo: Repo, draft: Draft) -> None: ...

    async def close_draft(self, repo: Repo, branch: str) -> None: ...

    async def examine(self, repo: Repo | None) -> Sequence[Finding]:
        """What the service needs here (and in this repository), each with what to do about it."""
        ...

    async def branch_warnings(self, repo: Repo, branch: str) -> Sequence[str]:
        """Faults in how the branch is protected that make merging unsafe: each says what follows and what to do."""
        ...
