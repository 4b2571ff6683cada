"""Mergeability and merging of pull requests, with GitHub's messages."""

import subprocess

from mergeyard.domain.ids import Sha
from tests.support.forges.github.actions import FakeRepository
from tests.support.forges.github.world import PullRequest
from tests.support.repositories import ENVIRONMENT

WRITERS = {"admin", "maintain", "write"}
PASSED = {"success", "neutral", "skipped"}
METHOD_NAMES = {"merge": "Merge commits", "squash": "Squash merges", "rebase": "Rebase merges"}


class MergeRefused(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


def mergeability(repository: FakeRepository, change: PullRequest) -> tuple[bool | None, str]:
    """`mergeable` and `mergeable_state`."""
    if not change.open or repository.origin.ref(change.base) is None:
        return None, "unknown"
    if change.being_checked > 0:
        change.being_checked -= 1
        return None, "unknown"
    if merged_tree(repository, change) is None:
        return False, "dirty"
    if change.draft:
        return True, "draft"
    if unmet_requirement(repository, change):
        return True, "blocked"
    return True, "clean" if not has_failing_status(repository, change) else "unstable"


def unmet_requirement(repository: FakeRepository, change: PullRequest) -> str | None:
    """The first unmet requirement of the base branch's protections, if any."""
    guards = [guards[change.base] for guards in (repository.protections, repository.rulesets) if change.base in guards]
    for context, app in ((context, guard.apps.get(context)) for guard in guards for context in guard.contexts):
        if not has_passed(repository, change.head, context, app):
            return f'Required status check "{context}" is expected.'
    if any(guard.reviews or guard.other_rules for guard in guards):
        return "Repository rule violations found"
    opinions = {user: opinion for user, opinion in change.reviews if repository.roles.get(user) in WRITERS}
    needed = max([guard.approvals for guard in guards], default=0)
    if needed and "CHANGES_REQUESTED" in opinions.values():
        return "Changes were requested."
    if list(opinions.values()).count("APPROVED") < needed:
        return f"At least {needed} approving review is required by reviewers with write access."
    return None


def has_passed(repository: FakeRepository, sha: Sha, context: str, app: int | None) -> bool:
    """Whether there are results of this name and all passed."""
    statuses = [status for status in repository.statuses.get(sha, {}).values() if status.context == context]
    runs = [run for run in repository.latest_check_runs(sha) if run.name == context]
    results = [status.state == "success" for status in statuses if app in (None, status.app)]
    results += [run.conclusion in PASSED for run in runs if app in (None, run.app_id)]
    return bool(results) and all(results)


def has_failing_status(repository: FakeRepository, change: PullRequest) -> bool:
    states = {status.state for status in repository.statuses.get(change.head, {}).values()}
    return bool(states - {"success"})


def merge(repository: FakeRepository, change: PullRequest, method: str, expected: str | None, message: str) -> Sha:
    if expected is not None and expected != change.head:
        raise MergeRefused(409, "Head branch was modified. Review and try the merge again.")
    if method not in repository.merge_methods:
        raise MergeRefused(405, f"{METHOD_NAMES[method]} are not allowed on this repository.")
    tree = merged_tree(repository, change) if change.open and not change.draft else None
    if tree is None:
        raise MergeRefused(405, "Pull Request is not mergeable")
    unmet = unmet_requirement(repository, change)
    if unmet:
        raise MergeRefused(405, unmet)
    return _land(repository, change, method, tree, message)


def merged_tree(repository: FakeRepository, change: PullRequest) -> str | None:
    return repository.origin.merged_tree(repository.origin.tip(change.base), change.head)


def _land(repository: FakeRepository, change: PullRequest, method: str, tree: str, message: str) -> Sha:
    """A rebase supports only one commit."""
    origin, base = repository.origin, repository.origin.tip(change.base)
    parents = ["-p", base, *(("-p", change.head) if method == "merge" else ())]
    author = {"GIT_AUTHOR_NAME": change.author, "GIT_AUTHOR_EMAIL": f"{change.author}@example.org"}
    command = ["git", "--git-dir", origin.url, "commit-tree", tree, *parents, "-m", message]
    result = subprocess.run(command, stdout=subprocess.PIPE, check=True, env=ENVIRONMENT | author)
    commit = Sha(result.stdout.decode().strip())
    origin.set_ref(change.base, commit)
    repository.mark_merged(change, commit)
    repository.on_push({f"refs/heads/{change.base}": (base, commit)})
    return commit
