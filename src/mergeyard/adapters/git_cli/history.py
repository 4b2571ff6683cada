"""Reads commits and their ancestry, creates commits, and merges them without a working tree."""

import zlib
from collections.abc import Collection, Iterator, Sequence

from mergeyard.adapters.git_cli.limits import Work
from mergeyard.adapters.git_cli.process import MAX_OUTPUT_BYTES, GitOptions, GitResult, Repository
from mergeyard.adapters.git_cli.remote import to_display_path, validate_sha
from mergeyard.domain.ids import Sha, object_format_of
from mergeyard.ports.git import (
    Commit,
    Conflict,
    GitError,
    Identity,
    MissingObject,
    OutputTooLargeError,
    Signature,
    Signer,
)

LOG_FIELDS = ("%H", "%P", "%T", "%an", "%ae", "%ad", "%cn", "%ce", "%cd")
FULL_MESSAGE, TRAILERS, NO_MESSAGE = "%B", "%(trailers:only,unfold)", ""
LOG = ("log", "-z", "--no-mailmap", "--no-show-signature", "--date=raw", "--stdin")
MAX_LOG_BYTES = 16 * 1024 * 1024
MAX_SHAS_BYTES = 16 * 1024 * 1024
"""About 400,000 commits."""
NO_COMMON_ANCESTOR = 1
"""Exit code of `git merge-base`."""


async def read_commit(repository: Repository, commit: Sha) -> Commit:
    (found,) = await read_log(repository, "--no-walk", stdin=validate_sha(commit).encode())
    return found


async def list_commit_shas(
    repository: Repository, head: Sha, without: Collection[Sha], limit: int | None
) -> tuple[Sha, ...]:
    arguments = ("rev-list", "--topo-order", "--reverse", *limit_options(limit), "--stdin")
    out = await repository.run_checked(*arguments, stdin=revision_range(head, without), max_bytes=MAX_SHAS_BYTES)
    return tuple(map(Sha, out.decode().split()))


async def list_commits(
    repository: Repository, head: Sha, without: Collection[Sha], limit: int | None, *, full_messages: bool
) -> tuple[Commit, ...]:
    order = ("--topo-order", "--reverse", *limit_options(limit))
    return await read_log(repository, *order, stdin=revision_range(head, without), full_messages=full_messages)


def limit_options(limit: int | None) -> tuple[str, ...]:
    """The newest commits, also in combination with `--reverse`."""
    return () if limit is None else (f"--max-count={limit}",)


async def read_log(
    repository: Repository, *options: str, stdin: bytes, full_messages: bool = False
) -> tuple[Commit, ...]:
    """Falls back to the trailers of the messages, then to no messages, when they are too large: a huge commit message
    must not make the history unreadable."""
    for message in (FULL_MESSAGE, TRAILERS):
        try:
            return await read_log_with_message(repository, message, options, stdin, MAX_LOG_BYTES)
        except OutputTooLargeError:
            if full_messages:
                raise
    return await read_log_with_message(repository, NO_MESSAGE, options, stdin, MAX_OUTPUT_BYTES)


async def read_log_with_message(
    repository: Repository, message: str, options: Sequence[str], stdin: bytes, max_bytes: int
) -> tuple[Commit, ...]:
    format_ = f"--format={'%x00'.join((*LOG_FIELDS, message))}"
    return tuple(parse_commits(await repository.run_checked(*LOG, format_, *options, stdin=stdin, max_bytes=max_bytes)))


async def list_first_parents(repository: Repository, head: Sha, down_to: Sha) -> tuple[Commit, ...] | None:
    found = await read_log(repository, "--first-parent", stdin=revision_range(head, [down_to]))
    by_sha = {commit.sha: commit for commit in found}
    newest_first: list[Commit] = []
    sha = head
    while sha != down_to:
        if sha not in by_sha or not by_sha[sha].parents:
            return None
        newest_first.append(by_sha[sha])
        sha = by_sha[sha].parents[0]
    return tuple(reversed(newest_first))


async def list_last_first_parents(repository: Repository, head: Sha, limit: int) -> tuple[Commit, ...]:
    return await read_log(repository, "--first-parent", f"--max-count={limit}", stdin=validate_sha(head).encode())


async def read_tree(repository: Repository, commit: Sha) -> Sha:
    arguments = ("rev-parse", "--verify", "--quiet", f"{validate_sha(commit)}^{{tree}}")
    await repository.check_object_format(commit)
    try:
        return await repository.read_sha(*arguments)
    except MissingObject:
        raise
    except GitError:  # a concurrent fetch may have added the commit between the failure and the missing-object check
        return await repository.read_sha(*arguments)


async def find_merge_bases(repository: Repository, one: Sha, other: Sha) -> tuple[Sha, ...]:
    result = await repository.run("merge-base", "--all", "--end-of-options", validate_sha(one), validate_sha(other))
    if result.exit_code not in (0, NO_COMMON_ANCESTOR):
        raise await repository.to_error(result, [one, other])
    return tuple(map(Sha, result.stdout.decode().split()))


async def contains(repository: Repository, commit: Sha, ancestor: Sha) -> bool:
    arguments = ("merge-base", "--is-ancestor", "--end-of-options", validate_sha(ancestor), validate_sha(commit))
    result = await repository.run(*arguments)
    match result.exit_code:
        case 0:
            return True
        case 1:
            return False
        case _:
            error = await repository.to_error(result, [commit])
            if isinstance(error, MissingObject):
                raise error
            if await repository.find_missing([ancestor]):
                return False
            return await recheck_ancestor(repository, arguments, error)


async def recheck_ancestor(repository: Repository, arguments: Sequence[str], error: GitError) -> bool:
    """A concurrent fetch may have added the ancestor between the failure and the missing-object check."""
    code = (await repository.run(*arguments)).exit_code
    if code not in (0, 1):
        raise error
    return code == 0


def revision_range(head: Sha, without: Collection[Sha]) -> bytes:
    lines = (validate_sha(head), *(f"^{validate_sha(sha)}" for sha in without))
    return "\n".join(lines).encode()


def parse_commits(out: bytes) -> Iterator[Commit]:
    fields = [field.decode(errors="replace") for field in out.split(b"\0")[:-1]]
    width = len(LOG_FIELDS) + 1
    for start in range(0, len(fields), width):
        sha, parents, tree_, *people, message = fields[start : start + width]
        yield Commit(
            sha=Sha(sha),
            parents=tuple(map(Sha, parents.split())),
            tree=Sha(tree_),
            author=Signature(*people[:3]),
            committer=Signature(*people[3:]),
            message=message,
        )


TRIMMED_CHARS = " .,:;<>\"\\'"
"""git removes these characters from both ends of a name."""
SIGNATURE_NAMESPACE = "git"
"""In which git verifies SSH signatures of commits."""
FORBIDDEN_CHARS = frozenset("<>\n\0")


async def create_commit(
    repository: Repository,
    identity: Identity,
    tree: Sha,
    parents: Sequence[Sha],
    message: str,
    author: Signature | None,
    committer_date: str | None,
) -> Sha:
    created = await repository.read_sha(
        "commit-tree",
        *(f"-p{validate_sha(parent)}" for parent in parents),
        "-F-",
        validate_sha(tree),
        stdin=encode_message(message),
        environment=identity_variables(identity)
        | (date_variables(committer_date) if committer_date else {})
        | (author_variables(author) if author else {}),
    )
    is_complete = identity.signer is None and not (author and is_trimmed(author))
    return created if is_complete else await complete_commit(repository, created, author, identity.signer)


def is_trimmed(author: Signature) -> bool:
    """git would remove characters at the ends of the name, such as the dot of `Davis Jr.`, or quotes."""
    is_valid = bool(author.name.strip(TRIMMED_CHARS)) and FORBIDDEN_CHARS.isdisjoint(author.name + author.email)
    return is_valid and any(text != text.strip(TRIMMED_CHARS) for text in (author.name, author.email))


async def is_commit(repository: Repository, sha: Sha) -> bool:
    return await repository.run_checked("cat-file", "-t", validate_sha(sha)) == b"commit\n"


async def complete_commit(repository: Repository, commit: Sha, author: Signature | None, signer: Signer | None) -> Sha:
    """Writes the same commit with the untrimmed author and a signature. Git could sign only with another process."""
    content = read_loose_object(repository, commit) or await repository.run_checked("cat-file", "commit", commit)
    content = restore_author(content, author) if author and is_trimmed(author) else content
    if signer is not None:
        header = object_format_of(commit).signature_header
        content = add_signature(content, header, signer.sign(content, SIGNATURE_NAMESPACE))
    return await repository.read_sha("hash-object", "-t", "commit", "-w", "--stdin", stdin=content)


def read_loose_object(repository: Repository, sha: Sha) -> bytes:
    """Read without a process: git has just written it. Empty if it is not there, because a pack had it already."""
    try:
        stored = (repository.path / "objects" / sha[:2] / sha[2:]).read_bytes()
        return zlib.decompress(stored).partition(b"\0")[2]
    except (OSError, zlib.error):
        return b""


def restore_author(content: bytes, author: Signature) -> bytes:
    """The first `author` line of a commit object is the header."""
    head, _, rest = content.partition(b"\nauthor ")
    line = f"author {author.name} <{author.email}> {author.date}".encode(errors="replace")
    return b"\n".join((head, line, rest.partition(b"\n")[2]))


def add_signature(content: bytes, header: bytes, signature: str) -> bytes:
    """As the last header, where git puts it. The further lines of a header start with a space."""
    headers, _, message = content.partition(b"\n\n")
    lines = signature.strip().replace("\n", "\n ")
    return b"%b\n%b %b\n\n%b" % (headers, header, lines.encode(), message)


def encode_message(message: str) -> bytes:
    """git rejects NUL and empty messages."""
    return message.replace("\0", "").encode(errors="replace") or b"\n"


def identity_variables(identity: Identity) -> dict[str, str]:
    return {
        "GIT_AUTHOR_NAME": identity.name,
        "GIT_AUTHOR_EMAIL": identity.email,
        "GIT_COMMITTER_NAME": identity.name,
        "GIT_COMMITTER_EMAIL": identity.email,
    }


def date_variables(date: str) -> dict[str, str]:
    return {"GIT_AUTHOR_DATE": f"@{date}", "GIT_COMMITTER_DATE": f"@{date}"}


def author_variables(author: Signature) -> dict[str, str]:
    """git rejects an author without a name, but existing histories contain some."""
    return {
        "GIT_AUTHOR_NAME": author.name if author.name.strip(TRIMMED_CHARS) else "unknown",
        "GIT_AUTHOR_EMAIL": author.email,
        "GIT_AUTHOR_DATE": f"@{author.date}",
    }


MERGE_TREE = ("merge-tree", "--write-tree", "-z", "--name-only", "--no-messages")
CONFLICT_EXIT_CODE = 1
MAX_CONFLICT_BYTES = 1024 * 1024
"""The output is truncated here: the first conflicting paths are sufficient."""
PLACEHOLDER_IDENTITY = {
    f"GIT_{role}_{what}": value
    for role in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "placeholder"), ("EMAIL", "placeholder@localhost"), ("DATE", "@0 +0000"))
}
"""Constant, so that the same stand-in commit is the same object each time."""


async def merge(repository: Repository, onto: Sha, head: Sha) -> Sha | Conflict:
    """Unrelated histories are a conflict without paths."""
    result = await run_merge_tree(repository, "--end-of-options", validate_sha(onto), validate_sha(head))
    if "refusing to merge unrelated histories" in result.stderr:
        return Conflict(())
    return await parse_merge_result(repository, result, onto, head)


async def cherry_pick(repository: Repository, onto: Sha, commit: Sha) -> Sha | Conflict:
    """A three-way merge with the commit's parent as merge base: the stand-in for `onto` has that parent.

    `merge-tree --merge-base` would do the same, but git 2.38 and 2.39 do not have it.
    """
    picked = await read_commit(repository, commit)
    ours = await create_stand_in(repository, onto, picked)
    result = await run_merge_tree(repository, "--allow-unrelated-histories", "--end-of-options", ours, picked.sha)
    return await parse_merge_result(repository, result, ours, picked.sha)


async def run_merge_tree(repository: Repository, *arguments: str) -> GitResult:
    options = GitOptions(work=Work.CONTENTS, max_bytes=MAX_CONFLICT_BYTES, allow_truncated=True)
    return await repository.run(*MERGE_TREE, *arguments, **options)


async def create_stand_in(repository: Repository, onto: Sha, picked: Commit) -> Sha:
    """A commit with the tree of `onto` and the parent of the picked commit."""
    parent = [f"-p{sha}" for sha in picked.parents[:1]]
    tree = f"{validate_sha(onto)}^{{tree}}"
    arguments = ("commit-tree", *parent, "-m", f"for {picked.sha}", tree)
    return await repository.read_sha(*arguments, environment=PLACEHOLDER_IDENTITY)


async def parse_merge_result(repository: Repository, result: GitResult, *commits: Sha) -> Sha | Conflict:
    """git uses the exit code of a conflict for a missing commit as well, but then prints no tree."""
    tree, *paths = result.stdout.split(b"\0")[:-1] or [b""]
    if result.exit_code == 0 and tree:
        return Sha(tree.decode())
    if tree and (result.exit_code == CONFLICT_EXIT_CODE or not result.is_complete):
        return Conflict(tuple(map(to_display_path, paths)))
    raise await repository.to_error(result, commits)
