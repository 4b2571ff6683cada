"""Merges with Gitea's own merge, and shows as merged what was pushed: it does not see that by itself."""

from mergeyard.adapters.forges.calling import Caller, Reply, words_of
from mergeyard.adapters.forges.gitea.dependencies import open_dependencies
from mergeyard.adapters.forges.gitea.doubts import Doubts
from mergeyard.adapters.forges.gitea.places import place_of, place_of_pull, segment
from mergeyard.adapters.forges.gitea.protection import branch_of, lacks_reviews, required
from mergeyard.adapters.forges.gitea.refs import head_ref
from mergeyard.adapters.forges.gitea.statuses import statuses_of
from mergeyard.adapters.forges.gitea.wire import Pull, Reference, Repository, allows
from mergeyard.domain.config import MergeMethod
from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.repositories import Repo
from mergeyard.domain.statuses import StatusState
from mergeyard.ports.forge import Merge, Merged, MergeForbidden, MergeOutcome, MergeRefused, NotMerged
from mergeyard.ports.host import HostRefused, HostTrouble

STYLES = {MergeMethod.MERGE_COMMIT: "merge", MergeMethod.SQUASH: "squash", MergeMethod.REBASE: "rebase"}
NEWER_NAMES = {
    "Do": "do",
    "MergeTitleField": "merge_title_field",
    "MergeMessageField": "merge_message_field",
    "MergeCommitID": "merge_commit_id",
}
"""What Gitea calls them since 1.26; earlier ones, and Forgejo, know only the former."""
LATER = "try again later"
REJECTED = "PushRejected"
FORBIDDEN = (403, 423)
"""The token lacks a scope, or the repository is archived."""
MISSING, CONFLICT = 404, 409


class Merging:
    def __init__(self, caller: Caller, doubts: Doubts) -> None:
        self._caller = caller
        self._doubts = doubts

    async def merge(self, repo: Repo, merge: Merge) -> MergeOutcome:
        known = await self._known_outcome(repo, merge)
        if known is not None:
            return known
        try:
            reply = await self._send(repo, merge.number, _wanted(merge))
        except HostTrouble:
            blocked = await self._blocked(repo, merge)
            if blocked is None:
                raise
            return blocked
        return await self._outcome(repo, merge, reply)

    async def merged_as(self, repo: Repo, merge: Merge) -> Sha | None:
        known = await self._known_outcome(repo, merge)
        return known.commit if isinstance(known, Merged) else None

    async def mark(self, repo: Repo, number: PrNumber, head: Sha, commit: Sha) -> None:
        """One that was pushed to since stays open: what was pushed has not landed."""
        pull = await self._read(repo, number)
        if pull is None or pull.merged or pull.state != "open" or pull.head.sha != head:
            return
        told = {"Do": "manually-merged", "MergeCommitID": commit}
        reply = await self._send(repo, number, told)
        if not reply.fine and not await self._is_merged(repo, number):
            raise HostRefused(
                f"{repo}#{number} landed as {commit}, but is not shown as merged: {words_of(reply.body)}. "
                "Let it be marked: in the repository's settings, under pull requests, enable "
                '"Mark pull request as manually merged" (allow_manual_merge)'
            )

    async def _known_outcome(self, repo: Repo, merge: Merge) -> MergeOutcome | None:
        """What needs no further asking, also after an answer that was lost."""
        pull = await self._read(repo, merge.number)
        if pull is None:
            return NotMerged("it is gone")
        if pull.base.label != merge.base:
            return NotMerged(f"its base is {pull.base.label} now")
        if pull.merged:
            return await self._merged(repo, pull, merge.head)
        if pull.state != "open":
            return NotMerged("it is closed")
        if pull.head.sha != merge.head:
            return NotMerged(f"its head is {pull.head.sha} now")
        return NotMerged("it is a draft") if pull.draft else None

    async def _merged(self, repo: Repo, pull: Pull, head: Sha) -> MergeOutcome:
        """What is shown as its head follows its branch even then; its ref does not, and tells what was merged."""
        refs = await self._caller.get_now(_place_of_head(repo, pull.number), list[Reference]) or []
        if [ref.object.sha for ref in refs if ref.ref == head_ref(pull.number)] != [head]:
            return NotMerged("another head of it was merged")
        if pull.merge_commit_sha is None:
            raise HostTrouble(f"{repo}#{pull.number} is merged, but not by any commit that is named")
        return Merged(pull.merge_commit_sha)

    async def _blocked(self, repo: Repo, merge: Merge) -> MergeOutcome | None:
        """By what it depends on: whoever merges it then is told of an internal error, and of nothing else."""
        left = await open_dependencies(self._caller, repo, merge.number)
        if not left:
            return None
        return await self._known_outcome(repo, merge) or MergeRefused(
            f"it depends on {', '.join(left)}, still open: close what is open or remove the dependency, "
            "then submit it again"
        )

    async def _outcome(self, repo: Repo, merge: Merge, reply: Reply) -> MergeOutcome:
        words = words_of(reply.body)
        if reply.status in FORBIDDEN:
            return MergeForbidden(words)
        if _may_pass(reply):
            self._doubts.note_refusal(repo, merge.number, merge.head)
            return NotMerged(words)
        return await self._known_outcome(repo, merge) or await self._refused(repo, merge, reply)

    async def _refused(self, repo: Repo, merge: Merge, reply: Reply) -> MergeOutcome:
        """This one, unless nobody's would be merged, or reviews are missing or its head is still being checked.

        Whether it counts as mergeable tells nothing now: after every attempt that is checked anew.
        """
        words = words_of(reply.body)
        if reply.fine:
            raise HostTrouble(f"{reply.url} was answered as done, but it is not merged")
        if not await self._allows(repo, merge):
            return MergeForbidden(words)
        pull = await self._read(repo, merge.number)
        waits = pull is None or await lacks_reviews(self._caller, repo, pull) or await self._is_checked(repo, merge)
        return NotMerged(words) if waits else MergeRefused(words)

    async def _is_checked(self, repo: Repo, merge: Merge) -> bool:
        """Just now: what it must pass has begun and not ended."""
        needed = required(await branch_of(self._caller, repo, merge.base))
        said = await statuses_of(self._caller, repo, merge.head, "") if needed else []
        return any(status.state is StatusState.PENDING for status in said if status.context in needed)

    async def _allows(self, repo: Repo, merge: Merge) -> bool:
        """Whether we may merge there at all, and in this way."""
        branch = await branch_of(self._caller, repo, merge.base)
        found = await self._caller.get_now(place_of(repo), Repository)
        return branch is not None and branch.user_can_merge and found is not None and allows(found, merge.method)

    async def _is_merged(self, repo: Repo, number: PrNumber) -> bool:
        pull = await self._read(repo, number)
        return pull is not None and pull.merged

    async def _send(self, repo: Repo, number: PrNumber, told: dict[str, str]) -> Reply:
        in_both = told | {NEWER_NAMES[name]: of for name, of in told.items() if name in NEWER_NAMES}
        return await self._caller.send("POST", f"{place_of_pull(repo, number)}/merge", in_both)

    async def _read(self, repo: Repo, number: PrNumber) -> Pull | None:
        return await self._caller.get_now(place_of_pull(repo, number), Pull)


def _wanted(merge: Merge) -> dict[str, str]:
    return {
        "Do": STYLES[merge.method],
        "head_commit_id": merge.head,
        "MergeTitleField": merge.title,
        "MergeMessageField": merge.message,
    }


def _place_of_head(repo: Repo, number: PrNumber) -> str:
    return f"{place_of(repo)}/git/refs/{segment(f'pull/{number}/head')}"


def _may_pass(reply: Reply) -> bool:
    words = words_of(reply.body)
    if reply.status == CONFLICT:
        return REJECTED not in words
    return reply.status == MISSING or LATER in words
