"""Merges by GitLab's own merge, and tells why it would not."""

from collections.abc import Iterable

from mergeyard.adapters.forges.calling import Caller, Reply, words_of
from mergeyard.adapters.forges.gitlab.checks import read_statuses, reported_on, show_status
from mergeyard.adapters.forges.gitlab.naming import merge_request_of
from mergeyard.adapters.forges.gitlab.pipelines import PIPELINE, state_of
from mergeyard.adapters.forges.gitlab.projects import settings_now
from mergeyard.adapters.forges.gitlab.pulls import CI, UNDECIDED
from mergeyard.adapters.forges.gitlab.wire import CommitStatus, MergeRequest, Project
from mergeyard.adapters.forges.times import instant
from mergeyard.domain import ours
from mergeyard.domain.config import LandingMethod, MergeMethod
from mergeyard.domain.ids import Sha
from mergeyard.domain.repositories import Repo
from mergeyard.domain.states import SATISFIED
from mergeyard.domain.statuses import CHECKS, Status, StatusState
from mergeyard.ports.forge import Merge, Merged, MergeForbidden, MergeOutcome, MergeRefused, NotMerged
from mergeyard.ports.host import HostTrouble

NO_REBASE = (
    "GitLab cannot rebase a merge request while it merges it, and shows one that was rebased elsewhere as unmerged: "
    "set mergeMethod to merge_commit, or to squash with landing provider_merge."
)
NO_PUSHED_SQUASH = (
    "GitLab shows a squashed merge request as merged only if it squashes by itself: set landing to provider_merge."
)
ONLY_FAST_FORWARD = (
    "The project merges by fast-forward only: choose a merge method with merge commits in its settings "
    "(Settings > Merge requests), or set landing to tested_commit."
)
ALWAYS_SQUASHED = (
    "The project squashes every merge request: allow merging without (Settings > Merge requests > Squash commits), "
    "or set mergeMethod to squash."
)
NEVER_SQUASHED = (
    "The project does not allow squashing: allow it (Settings > Merge requests > Squash commits), "
    "or set mergeMethod to merge_commit."
)
MAY_NOT = (
    "The account of Mergeyard may not merge into this branch: allow it (Settings > Repository > Protected branches)."
)
NO_PIPELINE = (
    "GitLab wants a pipeline of the head itself that succeeded: run it again, set landing to tested_commit, "
    'or turn off "Pipelines must succeed" in the settings of the project.'
)
ONLY_ON_THE_TIP = (
    "The project merges only what stands on the tip of its target branch: set landing to tested_commit, "
    "or choose the merge method with plain merge commits (Settings > Merge requests)."
)
TRIED = ("mergeable", "")
"""GitLab saw nothing in the way, and yet its merge came to nothing."""
HOOK = "hook"
AGAIN = "Try again"
"""Words in which GitLab tells that the server's own hook did not let the merge in, or did not answer in time."""


def refuses(method: MergeMethod, landing: LandingMethod) -> str | None:
    if method is MergeMethod.REBASE:
        return NO_REBASE
    if method is MergeMethod.SQUASH and landing is LandingMethod.TESTED_COMMIT:
        return NO_PUSHED_SQUASH
    return None


async def merge(caller: Caller, repo: Repo, order: Merge) -> MergeOutcome:
    project = await settings_now(caller, repo)
    shown = await _look(caller, repo, order)
    if (outcome := _settled(shown, order)) is not None:
        return outcome
    if words := _unable(project, order.method):
        return MergeForbidden(words)
    reply = await caller.send("PUT", f"{merge_request_of(repo, order.number)}/merge", _request(order))
    if not reply.fine:
        return await _why_not(caller, repo, order, reply)
    shown = reply.read(MergeRequest)
    if (outcome := _settled(shown, order)) is not None:
        return outcome
    if shown.merge_error:
        return _failed(shown.merge_error)
    raise HostTrouble(f"merge request {order.number} of {repo} is still being merged")


async def merged_as(caller: Caller, repo: Repo, order: Merge) -> Sha | None:
    outcome = _settled(await _look(caller, repo, order), order)
    return outcome.commit if isinstance(outcome, Merged) else None


async def _look(caller: Caller, repo: Repo, order: Merge) -> MergeRequest | None:
    shown = await caller.get_now(merge_request_of(repo, order.number), MergeRequest)
    if shown is None:
        await settings_now(caller, repo)
    return shown


def _settled(shown: MergeRequest | None, order: Merge) -> MergeOutcome | None:
    """What becomes of it without asking for a merge."""
    if shown is None:
        return NotMerged("It is gone.")
    if shown.sha != order.head:
        return NotMerged("Somebody pushed to it.")
    if shown.target_branch != order.base:
        return NotMerged(f"Its base is {shown.target_branch} now.")
    if shown.state == "merged":
        return Merged(_commit_of(shown))
    if shown.state == "closed":
        return NotMerged("Somebody closed it.")
    return None if shown.user.can_merge else MergeForbidden(MAY_NOT)


def _commit_of(shown: MergeRequest) -> Sha:
    return Sha(shown.merge_commit_sha or shown.squash_commit_sha or shown.sha or "")


def _unable(project: Project, method: MergeMethod) -> str | None:
    if method is MergeMethod.REBASE:
        return NO_REBASE
    if method is MergeMethod.SQUASH:
        return NEVER_SQUASHED if project.squash_option == "never" else None
    if project.squash_option == "always":
        return ALWAYS_SQUASHED
    return ONLY_FAST_FORWARD if project.merge_method == "ff" else None


def _request(order: Merge) -> dict[str, str | bool]:
    words = f"{order.title}\n\n{order.message}".rstrip()
    squash = order.method is MergeMethod.SQUASH
    messages = {"merge_commit_message": words} | ({"squash_commit_message": words} if squash else {})
    return {"sha": order.head, "squash": squash, **messages}


async def _why_not(caller: Caller, repo: Repo, order: Merge, reply: Reply) -> MergeOutcome:
    words = words_of(reply.body)
    shown = await _look(caller, repo, order)
    outcome = _settled(shown, order)
    if shown is None or outcome is not None:
        return outcome or NotMerged(words)
    if reply.status == 403:
        return MergeForbidden(words)
    if shown.detailed_merge_status in UNDECIDED or shown.state == "locked":
        raise HostTrouble(f"merge request {order.number} of {repo} cannot be merged yet: {words}")
    if shown.detailed_merge_status in CI:
        return await _for_its_pipeline(caller, repo, order, shown)
    if shown.detailed_merge_status == "need_rebase":
        return MergeForbidden(ONLY_ON_THE_TIP)
    tried = reply.status == 422 and shown.detailed_merge_status in TRIED
    return _failed(shown.merge_error or words) if tried else NotMerged(words)


async def _for_its_pipeline(caller: Caller, repo: Repo, order: Merge, shown: MergeRequest) -> MergeOutcome:
    statuses = await read_statuses(caller, repo, order.head)
    whole = next((status.state for status in statuses if status.context == PIPELINE), None)
    our_words = [status for status in await reported_on(caller, repo, order.head) if status.name == ours.STATUS]
    if our_words and (whole is None or CHECKS[whole] in SATISFIED):
        await _step_aside(caller, repo, order.head, our_words)
        raise HostTrouble(f"merge request {order.number} of {repo} cannot be merged yet: its pipeline waits for us")
    if shown.detailed_merge_status == "ci_must_pass" and whole in (StatusState.FAILURE, None):
        return MergeRefused(NO_PIPELINE)
    return NotMerged("A pipeline of its head has not come to its end.")


async def _step_aside(caller: Caller, repo: Repo, head: Sha, our_words: Iterable[CommitStatus]) -> None:
    """A pipeline that must succeed counts our own word too, and needs a moment to see that it is a good one now."""
    for said in our_words:
        if state_of(said) is not StatusState.SUCCESS:
            at, url = instant(said.created_at), said.target_url or ""
            good = Status(context=ours.STATUS, state=StatusState.SUCCESS, at=at, url=url, description="Merging.")
            await show_status(caller, repo, head, good)


def _failed(words: str) -> MergeOutcome:
    """What a hook of the server declines is no fault of this one; all else may be different the next time."""
    is_declined = HOOK in words and AGAIN not in words
    return MergeForbidden(words) if is_declined else NotMerged(words)
