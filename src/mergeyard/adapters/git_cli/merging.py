"""Merges commits into trees, in one process and without touching a file.

A bare repository has no `.gitattributes` in force, so that nothing in a pull request can choose how it is merged.
"""

from mergeyard.adapters.git_cli.history import read
from mergeyard.adapters.git_cli.names import checked_sha, readable
from mergeyard.adapters.git_cli.process import Answer
from mergeyard.adapters.git_cli.repository import Repository
from mergeyard.domain.ids import Sha
from mergeyard.ports.git import Commit, Conflict

MERGE_TREE = ("merge-tree", "--write-tree", "-z", "--name-only", "--no-messages")
CONFLICT = 1
MAX_CONFLICT_BYTES = 1024 * 1024
"""Of the paths that conflict: the first ones are enough."""
NOBODY = {
    f"GIT_{role}_{what}": value
    for role in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "nobody"), ("EMAIL", "nobody@localhost"), ("DATE", "@0 +0000"))
}
"""So that a stand-in is the same object however often it is made."""


async def merge(repository: Repository, onto: Sha, head: Sha) -> Sha | Conflict:
    """Histories that share nothing do not merge: a conflict without paths."""
    answer = await merge_tree(repository, "--end-of-options", checked_sha(onto), checked_sha(head))
    if "refusing to merge unrelated histories" in answer.words:
        return Conflict(())
    return await merged(repository, answer, onto, head)


async def pick(repository: Repository, onto: Sha, commit: Sha) -> Sha | Conflict:
    """A merge whose base is the parent: that is the one commit which `commit` shares with the stand-in of `onto`."""
    picked = await read(repository, commit)
    ours = await stand_in(repository, onto, picked)
    answer = await merge_tree(repository, "--allow-unrelated-histories", "--end-of-options", ours, picked.sha)
    return await merged(repository, answer, ours, picked.sha)


async def merge_tree(repository: Repository, *arguments: str) -> Answer:
    return await repository.call(*MERGE_TREE, *arguments, max_bytes=MAX_CONFLICT_BYTES, may_be_cut=True)


async def stand_in(repository: Repository, onto: Sha, picked: Commit) -> Sha:
    """The contents of `onto`, as if made upon the parent of the picked commit."""
    parent = [f"-p{sha}" for sha in picked.parents[:1]]
    tree = f"{checked_sha(onto)}^{{tree}}"
    out = await repository.ask("commit-tree", *parent, "-m", f"for {picked.sha}", tree, environment=NOBODY)
    return Sha(out.decode().strip())


async def merged(repository: Repository, answer: Answer, *commits: Sha) -> Sha | Conflict:
    """A commit that is missing ends in the same code as a conflict, but without a tree."""
    tree, *paths = answer.out.split(b"\0")[:-1] or [b""]
    if answer.code == 0 and tree:
        return Sha(tree.decode())
    if tree and (answer.code == CONFLICT or not answer.complete):
        return Conflict(tuple(map(readable, paths)))
    raise await repository.trouble(answer, commits)
