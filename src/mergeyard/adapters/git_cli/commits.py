"""Makes commits: ours, and those that we make for others."""

from collections.abc import Sequence

from msgspec import Struct

from mergeyard.adapters.git_cli.names import checked_sha
from mergeyard.adapters.git_cli.repository import Repository
from mergeyard.domain.ids import Sha
from mergeyard.ports.git import Signature

NO_NAME = " .,:;<>\"\\'"
"""What git leaves out at both ends of a name."""
INSIDE_NO_NAME = frozenset("<>\n\0")


class Committer(Struct, frozen=True):
    """Whom our commits name as their maker."""

    name: str
    email: str


async def commit(
    repository: Repository,
    committer: Committer,
    tree: Sha,
    parents: Sequence[Sha],
    message: str,
    author: Signature | None,
    committed: str | None,
) -> Sha:
    out = await repository.ask(
        "commit-tree",
        *(f"-p{checked_sha(parent)}" for parent in parents),
        "-F-",
        checked_sha(tree),
        stdin=writable(message),
        environment=made_by(committer)
        | (dated(committed) if committed else {})
        | (written_by(author) if author else {}),
    )
    made = Sha(out.decode().strip())
    return await signed_in_full(repository, made, author) if author and is_trimmed(author) else made


def is_trimmed(author: Signature) -> bool:
    """Git would leave something out at the ends: the dot of `Davis Jr.`, and quotes."""
    named = bool(author.name.strip(NO_NAME)) and INSIDE_NO_NAME.isdisjoint(author.name + author.email)
    return named and any(text != text.strip(NO_NAME) for text in (author.name, author.email))


async def signed_in_full(repository: Repository, made: Sha, author: Signature) -> Sha:
    """The same commit, with its author as history has it. The author is the first in a commit who is named so."""
    raw = await repository.ask("cat-file", "commit", made)
    head, _, rest = raw.partition(b"\nauthor ")
    line = f"author {author.name} <{author.email}> {author.date}".encode(errors="replace")
    whole = b"\n".join((head, line, rest.partition(b"\n")[2]))
    return Sha((await repository.ask("hash-object", "-t", "commit", "-w", "--stdin", stdin=whole)).decode().strip())


def writable(message: str) -> bytes:
    """Git takes no NUL in a message."""
    return message.replace("\0", "").encode(errors="replace") or b"\n"


def made_by(committer: Committer) -> dict[str, str]:
    return {
        "GIT_AUTHOR_NAME": committer.name,
        "GIT_AUTHOR_EMAIL": committer.email,
        "GIT_COMMITTER_NAME": committer.name,
        "GIT_COMMITTER_EMAIL": committer.email,
    }


def dated(committed: str) -> dict[str, str]:
    return {"GIT_AUTHOR_DATE": f"@{committed}", "GIT_COMMITTER_DATE": f"@{committed}"}


def written_by(author: Signature) -> dict[str, str]:
    """Git takes no author without a name, but history has some."""
    return {
        "GIT_AUTHOR_NAME": author.name if author.name.strip(NO_NAME) else "unknown",
        "GIT_AUTHOR_EMAIL": author.email,
        "GIT_AUTHOR_DATE": f"@{author.date}",
    }
