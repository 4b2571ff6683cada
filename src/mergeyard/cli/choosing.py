"""Finds out which queue is meant: the one that is named, or the only one that there is."""

from msgspec.structs import replace

from mergeyard.cli.exits import Ends, stop_with
from mergeyard.cli.plainly import clean
from mergeyard.cli.whom import Whom
from mergeyard.client import Client, QueueName, RepoName

MOST_CHOICES = 20


def named_repo(text: str) -> RepoName:
    try:
        return RepoName.parse(text)
    except ValueError:
        stop_with(f"{clean(text)} names no repository: write --repo host/owner/name.", Ends.WRONG_USE)


def spelled_out(whom: Whom) -> Whom:
    """With repository and branch, where both were named in one word."""
    if whom.queue is None:
        return whom
    repo, _, branch = whom.queue.rpartition(":")
    if not (repo and branch):
        stop_with(f"{clean(whom.queue)} names no queue: write --queue host/owner/name:branch.", Ends.WRONG_USE)
    return replace(whom, repo=repo, branch=branch)


def chosen(client: Client, repo: str | None, branch: str | None) -> QueueName:
    """Nobody is asked where both are named."""
    named = None if repo is None else named_repo(repo)
    if named is not None and branch is not None:
        return QueueName(named, branch)
    found = fitting(client, named, branch)
    if not found:
        stop_with(f"{missing(named, branch)} Make one with `mergeyard queue create`.", Ends.WRONG_USE)
    if len(found) > 1:
        stop_with(f"Say which queue you mean, with --repo and --branch:\n{listed(found)}", Ends.WRONG_USE)
    return found[0]


def fitting(client: Client, repo: RepoName | None, branch: str | None) -> list[QueueName]:
    """Every queue that the token sees, or those of this repository or branch."""
    queues = [queue.named for queue in client.list_queues().queues]
    return [queue for queue in queues if same_repo(repo, queue) and branch in (None, queue.branch)]


def same_repo(repo: RepoName | None, queue: QueueName) -> bool:
    """Most hosts do not care about case, and none has two that differ in nothing else here."""
    return repo is None or str(repo).lower() == str(queue.repo).lower()


def listed(queues: list[QueueName]) -> str:
    lines = [f"  --repo {queue.repo} --branch {queue.branch}" for queue in queues[:MOST_CHOICES]]
    more = [f"  and {len(queues) - MOST_CHOICES} more"] if len(queues) > MOST_CHOICES else []
    return "\n".join(map(clean, [*lines, *more]))


def missing(repo: RepoName | None, branch: str | None) -> str:
    where = " of ".join(filter(None, [branch, None if repo is None else str(repo)]))
    return f"This token sees no queue for {clean(where)}." if where else "This token sees no queue."
