"""Reads commits, and how they descend from each other."""

from collections.abc import Collection, Iterator, Sequence

from mergeyard.adapters.git_cli.names import checked_sha
from mergeyard.adapters.git_cli.process import MAX_OUTPUT_BYTES
from mergeyard.adapters.git_cli.repository import Repository
from mergeyard.domain.ids import Sha
from mergeyard.ports.git import Commit, GitTrouble, MissingObject, OutputTooLargeError, Signature

FIELDS = ("%H", "%P", "%T", "%an", "%ae", "%ad", "%cd")
WHOLE_MESSAGE, TRAILERS, NO_MESSAGE = "%B", "%(trailers:only,unfold)", ""
LOG = ("log", "-z", "--no-mailmap", "--no-show-signature", "--date=raw", "--stdin")
MAX_LOG_BYTES = 16 * 1024 * 1024
MAX_SHAS_BYTES = 16 * 1024 * 1024
"""About 400,000 commits."""
NO_COMMON_ANCESTOR = 1
"""The exit code of `git merge-base`."""


async def read(repository: Repository, commit: Sha) -> Commit:
    (found,) = await log(repository, "--no-walk", stdin=checked_sha(commit).encode())
    return found


async def shas(repository: Repository, head: Sha, without: Collection[Sha], limit: int | None) -> tuple[Sha, ...]:
    question = ("rev-list", "--topo-order", "--reverse", *newest(limit), "--stdin")
    out = await repository.ask(*question, stdin=between(head, without), max_bytes=MAX_SHAS_BYTES)
    return tuple(map(Sha, out.decode().split()))


async def commits(
    repository: Repository, head: Sha, without: Collection[Sha], limit: int | None, *, whole: bool
) -> tuple[Commit, ...]:
    order = ("--topo-order", "--reverse", *newest(limit))
    return await log(repository, *order, stdin=between(head, without), whole=whole)


def newest(limit: int | None) -> tuple[str, ...]:
    return () if limit is None else (f"--max-count={limit}",)


async def log(repository: Repository, *options: str, stdin: bytes, whole: bool = False) -> tuple[Commit, ...]:
    """Where the messages are too large, only their trailers, or no messages: what a commit says cannot make its
    history unreadable."""
    for message in (WHOLE_MESSAGE, TRAILERS):
        try:
            return await log_with(repository, message, options, stdin, MAX_LOG_BYTES)
        except OutputTooLargeError:
            if whole:
                raise
    return await log_with(repository, NO_MESSAGE, options, stdin, MAX_OUTPUT_BYTES)


async def log_with(
    repository: Repository, message: str, options: Sequence[str], stdin: bytes, max_bytes: int
) -> tuple[Commit, ...]:
    format_ = f"--format={'%x00'.join((*FIELDS, message))}"
    return tuple(parsed(await repository.ask(*LOG, format_, *options, stdin=stdin, max_bytes=max_bytes)))


async def first_parents(repository: Repository, head: Sha, down_to: Sha) -> tuple[Commit, ...] | None:
    found = {commit.sha: commit for commit in await log(repository, "--first-parent", stdin=between(head, [down_to]))}
    way: list[Commit] = []
    at = head
    while at != down_to:
        if at not in found or not found[at].parents:
            return None
        way.append(found[at])
        at = found[at].parents[0]
    return tuple(reversed(way))


async def last_first_parents(repository: Repository, head: Sha, limit: int) -> tuple[Commit, ...]:
    return await log(repository, "--first-parent", f"--max-count={limit}", stdin=checked_sha(head).encode())


async def tree(repository: Repository, commit: Sha) -> Sha:
    question = ("rev-parse", "--verify", "--quiet", f"{checked_sha(commit)}^{{tree}}")
    try:
        out = await repository.ask(*question)
    except MissingObject:
        raise
    except GitTrouble:  # somebody may have fetched it between the question and the look at what is missing
        out = await repository.ask(*question)
    return Sha(out.decode().strip())


async def merge_bases(repository: Repository, one: Sha, other: Sha) -> tuple[Sha, ...]:
    answer = await repository.call("merge-base", "--all", "--end-of-options", checked_sha(one), checked_sha(other))
    if answer.code not in (0, NO_COMMON_ANCESTOR):
        raise await repository.trouble(answer, [one, other])
    return tuple(map(Sha, answer.out.decode().split()))


async def holds(repository: Repository, commit: Sha, ancestor: Sha) -> bool:
    question = ("merge-base", "--is-ancestor", "--end-of-options", checked_sha(ancestor), checked_sha(commit))
    answer = await repository.call(*question)
    match answer.code:
        case 0:
            return True
        case 1:
            return False
        case _:
            trouble = await repository.trouble(answer, [commit])
            if isinstance(trouble, MissingObject):
                raise trouble
            if await repository.missing([ancestor]):
                return False
            return await holds_what_was_just_brought(repository, question, trouble)


async def holds_what_was_just_brought(repository: Repository, question: Sequence[str], trouble: GitTrouble) -> bool:
    """Somebody fetched the ancestor between the question and the look at what is missing."""
    code = (await repository.call(*question)).code
    if code not in (0, 1):
        raise trouble
    return code == 0


def between(head: Sha, without: Collection[Sha]) -> bytes:
    lines = (checked_sha(head), *(f"^{checked_sha(sha)}" for sha in without))
    return "\n".join(lines).encode()


def parsed(out: bytes) -> Iterator[Commit]:
    fields = [field.decode(errors="replace") for field in out.split(b"\0")[:-1]]
    width = len(FIELDS) + 1
    for start in range(0, len(fields), width):
        sha, parents, tree_, name, email, date, committed, message = fields[start : start + width]
        yield Commit(
            sha=Sha(sha),
            parents=tuple(map(Sha, parents.split())),
            tree=Sha(tree_),
            author=Signature(name, email, date),
            committed=committed,
            message=message,
        )
