"""Has GitHub merge a pull request, and finds out what came of it, whatever became of the reply."""

from mergeyard.adapters.forges.calling import Caller, Reply, words_of
from mergeyard.adapters.forges.github import pulls, wire
from mergeyard.adapters.forges.github.names import place
from mergeyard.domain.config import LandingMethod, MergeMethod
from mergeyard.domain.ids import Sha
from mergeyard.domain.repositories import Repo
from mergeyard.ports.forge import Merge, Merged, MergeForbidden, MergeOutcome, MergeRefused, NotMerged

METHODS = {MergeMethod.MERGE_COMMIT: "merge", MergeMethod.SQUASH: "squash", MergeMethod.REBASE: "rebase"}
MAY_NOT = (403, 404)
"""Of a pull request that can be read."""
JUDGED = (*MAY_NOT, 405, 409, 422)
"""It understood, and did not merge: now, or ever."""
SETTINGS = (
    "not allowed on this",
    "must not contain merge commits",
    "through the merge queue",
    "Cannot update this protected ref",
    "not authorized",
)
"""What it says when it would merge nobody in this way."""
FOR_GOOD = ("can't be rebased", "cannot be rebased")
"""What it says of one that it cannot merge in this way. All else may pass: its opinions lag behind what happens."""


def refuses(method: MergeMethod, landing: LandingMethod) -> str | None:
    if landing is LandingMethod.PROVIDER_MERGE or method is MergeMethod.MERGE_COMMIT:
        return None
    return (
        f"GitHub shows a pull request as merged only when its own commits are on the target, which `{method}` does not "
        "put there, or when it merged it itself: set `landing` to `provider_merge`, or `mergeMethod` to `merge_commit`."
    )


async def merge(caller: Caller, repo: Repo, wanted: Merge) -> MergeOutcome:
    """GitHub compares the head and not the base: that is read first."""
    settled = _settled(await pulls.read(caller, repo, wanted.number), wanted)
    if settled is not None:
        return settled
    reply = await caller.send("PUT", f"{place(repo)}/pulls/{wanted.number}/merge", _order(wanted))
    if reply.fine:
        return Merged(Sha(reply.read(wire.MergeResult).sha))
    if reply.status not in JUDGED:
        raise reply.trouble()
    return _judged(await pulls.read(caller, repo, wanted.number), wanted, reply)


async def merged_as(caller: Caller, repo: Repo, wanted: Merge) -> Sha | None:
    settled = _settled(await pulls.read(caller, repo, wanted.number), wanted)
    return settled.commit if isinstance(settled, Merged) else None


def _order(wanted: Merge) -> dict[str, str]:
    """Rebased commits keep their own words."""
    order = {"sha": wanted.head, "merge_method": METHODS[wanted.method]}
    words = {"commit_title": wanted.title, "commit_message": wanted.message}
    return order if wanted.method is MergeMethod.REBASE else order | words


def _settled(pull: wire.Pull | None, wanted: Merge) -> Merged | NotMerged | None:
    """What became of it without a merge of ours; None: it can be tried."""
    if pull is None:
        return NotMerged("It is gone.")
    if pull.head.sha != wanted.head:
        return NotMerged("Somebody pushed to it.")
    if pull.base.ref != wanted.base:
        return NotMerged(f"It is to be merged into {pull.base.ref} now.")
    if pull.merged_at and pull.merge_commit_sha:
        return Merged(Sha(pull.merge_commit_sha))
    return None if pull.state == "open" else NotMerged("Somebody closed it.")


def _judged(pull: wire.Pull | None, wanted: Merge, reply: Reply) -> MergeOutcome:
    """A refusal is final only in words that are known to be."""
    settled, words = _settled(pull, wanted), words_of(reply.body)
    if settled is not None:
        return settled
    if reply.status in MAY_NOT or _tells(words, SETTINGS):
        return MergeForbidden(words)
    return MergeRefused(words) if _tells(words, FOR_GOOD) else NotMerged(words)


def _tells(words: str, known: tuple[str, ...]) -> bool:
    return any(word.lower() in words.lower() for word in known)
