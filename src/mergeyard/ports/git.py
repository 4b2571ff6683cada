"""Git, as far as the service needs it: a mirror of a repository, in which commits are made and pushed from.

Nothing of a pull request is ever checked out here. Trouble that may pass raises `GitTrouble`; a conflict is a value.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from mergeyard.domain.ids import Sha


class GitTrouble(Exception):
    """The repository could not be read or written, which says nothing about any pull request: try again later."""


class OutputTooLargeError(GitTrouble):
    """Git answered with more than we are willing to hold in memory, and was ended. Asking again changes nothing: a task
    that asked because of one pull request decides about that pull request instead of repeating the question."""


class InvalidTreeError(Exception):
    """Git refuses to write the files of a commit, because a name among them is dangerous or malformed. No attempt will
    do better: the pull request that brought it has to change."""


class MissingObject(GitTrouble):
    """The mirror lacks a commit that was named: bring it with `fetch` and ask again."""


class Remote(Struct, frozen=True):
    """Where a repository is fetched from and pushed to."""

    url: str
    environment: Mapping[str, str] = {}
    """Credentials travel here, never in the address or the arguments."""


class Conflict(Struct, frozen=True):
    paths: tuple[str, ...]


class TooLargeFile(Struct, frozen=True):
    """A file that was not read because it has more bytes than the caller allows."""

    size: int


class Signature(Struct, frozen=True):
    """Who made a change, and when, in git's own form `<seconds> <offset>`."""

    name: str
    email: str
    date: str


class Commit(Struct, frozen=True):
    sha: Sha
    parents: tuple[Sha, ...]
    tree: Sha
    author: Signature
    committed: str
    """When, in git's own form."""
    message: str


class RefUpdate(Struct, frozen=True):
    """Move a ref, if it is where we think it is. None: it does not exist."""

    ref: str
    old: Sha | None
    new: Sha | None


class Pushed(Struct, frozen=True):
    """All refs are where they should be."""


class Stale(Struct, frozen=True):
    """Some ref was not where we thought; none was moved."""


class PushRefused(Struct, frozen=True):
    """The host will not have it, and will not have it later either."""

    words: str


PushOutcome = Pushed | Stale | PushRefused


class Mirror(Protocol):
    """One repository. Commits that it has once seen stay in it."""

    async def remote_refs(self, *patterns: str) -> Mapping[str, Sha]:
        """Where these refs (full names, or patterns with one `*`) are at the remote now, read from there."""
        ...

    async def fetch(self, refs: Collection[str]) -> Mapping[str, Sha]:
        """Bring these refs (full names, or patterns with one `*`) and tell where they are; absent ones are left out."""
        ...

    async def fetch_commit(self, commit: Sha) -> None:
        """Bring a commit to which no ref leads any more, as long as the remote has it."""
        ...

    async def forget(self, pattern: str, *, unless: Callable[[str], bool]) -> None:
        """Let go of the refs that were fetched and match a pattern, unless they are wanted. Their commits stay."""
        ...

    async def merge(self, onto: Sha, head: Sha) -> Sha | Conflict:
        """The tree of a three-way merge of two commits."""
        ...

    async def pick(self, onto: Sha, commit: Sha) -> Sha | Conflict:
        """The tree of `onto` with what this one commit changed upon its first parent."""
        ...

    async def commit(
        self,
        tree: Sha,
        parents: Sequence[Sha],
        message: str,
        author: Signature | None = None,
        committed: str | None = None,
    ) -> Sha:
        """A new commit by us; with an author, as theirs. With a date, whoever makes it again makes the same."""
        ...

    async def read(self, commit: Sha) -> Commit: ...

    async def shas(self, head: Sha, *, without: Collection[Sha], limit: int | None = None) -> tuple[Sha, ...]:
        """The commits that `head` holds and `without` does not, oldest first; `limit` keeps the newest."""
        ...

    async def commits(
        self, head: Sha, *, without: Collection[Sha], limit: int | None = None, whole: bool = False
    ) -> tuple[Commit, ...]:
        """What `head` holds and `without` does not, oldest first, parents before children; `limit` keeps the newest.

        This and the methods below reduce the messages to their trailers when all of them together are too large, unless
        `whole` ones are needed: then `OutputTooLargeError` is raised.
        """
        ...

    async def first_parents(self, head: Sha, *, down_to: Sha) -> tuple[Commit, ...] | None:
        """From above `down_to` to `head`, along first parents, oldest first; None when that way does not lead there."""
        ...

    async def last_first_parents(self, head: Sha, *, limit: int) -> tuple[Commit, ...]:
        """`head` and what lies below it along first parents, newest first."""
        ...

    async def tree(self, commit: Sha) -> Sha: ...

    async def holds(self, commit: Sha, ancestor: Sha) -> bool:
        """Whether `ancestor` is `commit` or part of its history. An ancestor that the mirror does not know is not."""
        ...

    async def contained(self, tip: Sha, refs: Collection[str]) -> frozenset[Sha]:
        """Of the refs that were fetched, as names or patterns, the heads that are part of the history of `tip`."""
        ...

    async def tree_problems(self, head: Sha, *, without: Sha | None) -> tuple[str, ...]:
        """What git's own check finds wrong with the folders that `head` (a commit or tree) brings and `without` lacks,
        such as a file named `.git`: sentences for people, without the defects that do no harm."""
        ...

    async def changed_paths(self, before: Sha, after: Sha) -> frozenset[bytes]:
        """Every path that differs between two commits or trees; a rename is both its names."""
        ...

    async def changed_paths_matching(self, before: Sha, after: Sha, globs: Collection[str]) -> tuple[str, ...]:
        """The paths, as text for people, that differ between two commits or trees and that a glob matches.

        Globs match whole paths from the root: `*` and `?` do not match `/`, `**` between slashes matches any folders, a
        trailing `/` means everything below, and a glob without wildcards also matches everything below that folder. Of
        very many paths only the first are returned.
        """
        ...

    async def merge_bases(self, one: Sha, other: Sha) -> tuple[Sha, ...]:
        """Every best common ancestor of two commits; none when their histories share nothing."""
        ...

    async def transplant(self, onto: Sha, source: Sha, paths: Collection[bytes]) -> Sha | Conflict:
        """The tree of `onto` with exactly the contents of commit `source` at these paths (absent there: removed).

        A conflict when a file would have to go that is not among the paths, because a folder comes in its place.
        """
        ...

    async def file(self, commit: Sha, path: str, *, max_bytes: int) -> bytes | TooLargeFile | None:
        """What a file holds, measured before it is read; None when there is no such file."""
        ...

    async def has_same_file(self, one: Sha, other: Sha, path: str) -> bool:
        """Whether a file is the same in two commits, or in neither, without reading it."""
        ...

    async def push(self, *updates: RefUpdate) -> PushOutcome:
        """All or none, each only from its old value. When the answer is lost, `GitTrouble`: read the remote."""
        ...

    async def export(self, commit: Sha, folder: str) -> None:
        """Write the files of a commit into an empty folder, and nothing else: for the runner of checks.

        Raises `InvalidTreeError` when git refuses the name of a file.
        """
        ...


class Git(Protocol):
    def at_hand(self) -> Collection[str]:
        """The names of all mirrors that are here."""
        ...

    async def check(self) -> None:
        """Raises `GitTrouble` with advice when the installed git cannot do what is needed."""
        ...

    async def mirror(self, name: str, remote: Remote) -> Mirror:
        """The mirror of this remote under this name (`host/owner/name`); made when it is not there."""
        ...

    async def tidy(self) -> None:
        """Puts in order the mirrors to which something was brought. Nothing is lost by it."""
        ...
