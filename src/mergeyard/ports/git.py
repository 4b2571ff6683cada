"""The Git operations that the service needs, on a mirror of a repository.

No file of a pull request is ever checked out here. A failure that a retry can fix raises `GitError`; a conflict is a
return value.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from mergeyard.domain.ids import Sha


class GitError(Exception):
    """The repository could not be read or written. This is not the fault of any pull request: retry later. Unless it is
    one of the three below, git failed on this machine."""


class RemoteUnavailable(GitError):
    """The Git host did not answer git, or not as expected."""


class RemoteRefused(GitError):
    """The Git host does not let our account read or write the repository with git."""


class RemoteUnsupported(GitError):
    """What answers git is no Git host, or it lacks what we need. The message says what it is, and what to do: to wait
    does not help."""


class LimitExceededError(GitError):
    """Git exceeded its limit of memory or time, or was killed. The first time the machine may have been busy. A task
    that asked about one pull request must decide about that pull request the second time, instead of retrying."""


class OutputTooLargeError(LimitExceededError):
    """Git produced more output than fits the memory limit and was killed. A retry gives the same: a task that asked
    about one pull request must decide about that pull request at once."""


class TooManyPathsError(OutputTooLargeError):
    """The folders of a commit contain each other so often that the commit has more paths than git can list."""


class InvalidTreeError(Exception):
    """Git refuses to write the files of a commit because a file name is dangerous or malformed. Retrying cannot help:
    the pull request has to change."""


class MissingObject(GitError):
    """The mirror lacks a commit: get it with `fetch`, then retry."""


class Remote(Struct, frozen=True):
    """Where a repository is fetched from and pushed to."""

    url: str
    environment: Mapping[str, str] = {}
    """Credentials are passed here, never in the URL or the arguments."""


class Conflict(Struct, frozen=True):
    paths: tuple[str, ...]


class TooLargeFile(Struct, frozen=True):
    """A file that was not read because it is larger than the caller allows."""

    size: int


class Signature(Struct, frozen=True):
    """Author or committer: name, email, and date in git's format `<seconds> <offset>`."""

    name: str
    email: str
    date: str


class Signer(Protocol):
    """A private key that signs what we write."""

    @property
    def public_key(self) -> str:
        """In the format in which an administrator registers it: a line of an SSH key, or an OpenPGP key in armor."""
        ...

    @property
    def fingerprint(self) -> str:
        """Of the public key: `SHA256:...` for an SSH key, hexadecimal digits for an OpenPGP key."""
        ...

    @property
    def expires_at(self) -> float:
        """In seconds since 1970. Later signatures are not valid. Infinite for a key without an end."""
        ...

    def sign(self, payload: bytes, namespace: str) -> str:
        """An armored signature. An SSH signature is valid only for its namespace, for example `git`."""
        ...

    def sign_bytes(self, payload: bytes, at: int) -> tuple[str, bytes]:
        """The fingerprint of the key, which can change between two calls, and its signature without armor: of the key's
        algorithm for an SSH key, a detached one with this date (in seconds) for an OpenPGP key."""
        ...


class Identity(Struct, frozen=True):
    """The committer of our commits, and the key that signs them."""

    name: str
    email: str
    signer: Signer | None = None


class Commit(Struct, frozen=True):
    sha: Sha
    parents: tuple[Sha, ...]
    tree: Sha
    author: Signature
    committer: Signature
    message: str


class RefUpdate(Struct, frozen=True):
    """Move a ref if it is at `old`. None: it does not exist."""

    ref: str
    old: Sha | None
    new: Sha | None


class Pushed(Struct, frozen=True):
    """All refs are at their new values."""


class Stale(Struct, frozen=True):
    """A ref was not at its old value. No ref was moved."""


class PushRefused(Struct, frozen=True):
    """The host permanently refuses the push."""

    detail: str
    refs: tuple[str, ...] = ()
    """The refs that the host refuses, if it names them. No ref was moved."""


PushOutcome = Pushed | Stale | PushRefused


class Mirror(Protocol):
    """The mirror of one repository. Commits are never removed from it."""

    async def remote_refs(self, *patterns: str) -> Mapping[str, Sha]:
        """Where these refs (full names, or patterns with one `*`) are now, read from the remote."""
        ...

    async def fetch(self, refs: Collection[str]) -> Mapping[str, Sha]:
        """Fetches these refs (full names, or patterns with one `*`) and returns where they are; refs that do not exist
        are omitted."""
        ...

    async def fetch_commit(self, commit: Sha) -> None:
        """Fetches a commit that no ref leads to, if the remote still has it."""
        ...

    async def prune_refs(self, pattern: str, *, keep: Callable[[str], bool]) -> None:
        """Deletes the fetched refs that match a pattern, unless `keep` returns true. Their commits stay."""
        ...

    async def merge(self, onto: Sha, head: Sha) -> Sha | Conflict:
        """The tree of a three-way merge of two commits."""
        ...

    async def cherry_pick(self, onto: Sha, commit: Sha) -> Sha | Conflict:
        """The tree of `onto` with the changes of one commit relative to its first parent."""
        ...

    async def commit(
        self,
        tree: Sha,
        parents: Sequence[Sha],
        message: str,
        author: Signature | None = None,
        committer_date: str | None = None,
    ) -> Sha:
        """Creates a commit, by us or with the given author. With a committer date the result is reproducible."""
        ...

    async def add_notes(self, tip: Sha | None, notes: Mapping[Sha, bytes]) -> Sha:
        """Creates the commit on top of `tip` (None: the first one) in which these commits have these git notes, instead
        of former ones; returns `tip` if that is so already. Of `tip` only notes stay, and no other files."""
        ...

    async def read_commit(self, commit: Sha) -> Commit: ...

    async def commit_shas(self, head: Sha, *, without: Collection[Sha], limit: int | None = None) -> tuple[Sha, ...]:
        """The commits that `head` contains and `without` does not, oldest first; `limit` keeps the newest."""
        ...

    async def commits(
        self, head: Sha, *, without: Collection[Sha], limit: int | None = None, full_messages: bool = False
    ) -> tuple[Commit, ...]:
        """The commits that `head` contains and `without` does not, oldest first, parents before children; `limit` keeps
        the newest.

        If the messages together are too large, this method and those below reduce each to its trailers. With
        `full_messages` they raise `OutputTooLargeError` instead.
        """
        ...

    async def first_parents(self, head: Sha, *, down_to: Sha) -> tuple[Commit, ...] | None:
        """From above `down_to` to `head` along first parents, oldest first; None if `down_to` is not among them."""
        ...

    async def last_first_parents(self, head: Sha, *, limit: int) -> tuple[Commit, ...]:
        """`head` and its ancestors along first parents, newest first."""
        ...

    async def tree(self, commit: Sha) -> Sha: ...

    async def contains(self, commit: Sha, ancestor: Sha) -> bool:
        """Whether `ancestor` is `commit` or one of its ancestors. False if the mirror does not know `ancestor`."""
        ...

    async def contained_heads(self, tip: Sha, refs: Collection[str]) -> frozenset[Sha]:
        """Of the fetched refs (names or patterns), the heads that `tip` contains."""
        ...

    async def tree_problems(self, head: Sha, *, without: Sha | None) -> tuple[str, ...]:
        """Problems that `git fsck` finds in the trees that `head` (a commit or tree) adds to `without`, such as a file
        named `.git`. Harmless defects are omitted. One sentence each. Raises `TooManyPathsError`."""
        ...

    async def changed_paths(self, before: Sha, after: Sha) -> frozenset[bytes]:
        """Every path that differs between two commits or trees; a rename counts as both paths."""
        ...

    async def changed_paths_matching(self, before: Sha, after: Sha, globs: Collection[str]) -> tuple[str, ...]:
        """The paths that differ between two commits or trees and match a glob, as text to display.

        Globs match whole paths from the root: `*` and `?` do not match `/`, `**` between slashes matches any folders, a
        trailing `/` means everything below, and a glob without wildcards also matches everything below that folder. If
        there are very many paths, only the first are returned.
        """
        ...

    async def merge_bases(self, one: Sha, other: Sha) -> tuple[Sha, ...]:
        """Every best common ancestor of two commits; empty if their histories are unrelated."""
        ...

    async def replace_paths(self, onto: Sha, source: Sha, paths: Collection[bytes]) -> Sha | Conflict:
        """The tree of `onto` with exactly the contents of commit `source` at these paths (absent there: removed).

        A conflict if a folder would replace a file that is not among the paths.
        """
        ...

    async def read_file(self, commit: Sha, path: str, *, max_bytes: int) -> bytes | TooLargeFile | None:
        """The contents of a file, whose size is checked before it is read; None if it does not exist."""
        ...

    async def has_same_file(self, one: Sha, other: Sha, path: str) -> bool:
        """Whether a file is the same in two commits, or in neither, without reading it."""
        ...

    async def push(self, *updates: RefUpdate, to: Remote | None = None) -> PushOutcome:
        """Updates all refs or none, each only from its old value, on the remote or on a fork of it. If the response is
        lost it raises `GitError`: read the remote to learn the outcome."""
        ...

    async def export_tree(self, commit: Sha, folder: str) -> None:
        """Writes the files of a commit into an empty folder, for the check runner.

        Raises `InvalidTreeError` when git refuses the name of a file.
        """
        ...


class Git(Protocol):
    def mirror_names(self) -> Collection[str]:
        """The names of the mirrors on this machine."""
        ...

    async def check(self) -> None:
        """Raises `GitError` with advice if the installed git lacks a needed feature."""
        ...

    async def mirror(self, name: str, remote: Remote, identity: Identity | None = None) -> Mirror:
        """The mirror of this remote under this name (`host/owner/name`); created if it does not exist. Without an
        identity its commits have the default one."""
        ...

    async def run_maintenance(self) -> None:
        """Runs maintenance on mirrors that fetched something since. No commit is lost."""
        ...
