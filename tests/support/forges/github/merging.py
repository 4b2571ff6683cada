"""How the fake judges and merges pull requests, in the words of GitHub."""

import subprocess

from mergeyard.domain.ids import Sha
from tests.support.forges.github.facts import Change
from tests.support.forges.github.repository import FakeRepository
from tests.support.repositories import ENVIRONMENT

WRITERS = {"admin", "maintain", "write"}
PASSED = {"success", "neutral", "skipped"}
ALLOWED = {"merge": "Merge commits", "squash": "Squash merges", "rebase": "Rebase merges"}


class Refusal(Exception):
    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status
        self.words = words


def judged(repository: FakeRepository, change: Change) -> tuple[bool | None, str]:
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
    if lacking(repository, change):
        return True, "blocked"
    return True, "clean" if not failing(repository, change) else "unstable"


def lacking(repository: FakeRepository, change: Change) -> str | None:
    """What rules of the base still want."""
    guards = [guards[change.base] for guards in (repository.guards, repository.rulesets) if change.base in guards]
    for context, app in ((context, guard.apps.get(context)) for guard in guards for context in guard.contexts):
        if not passed(repository, change.head, context, app):
            return f'Required status check "{context}" is expected.'
    if any(guard.reviews or guard.further for guard in guards):
        return "Repository rule violations found"
    opinions = {person: opinion for person, opinion in change.reviews if repository.roles.get(person) in WRITERS}
    needed = max([guard.approvals for guard in guards], default=0)
    if needed and "CHANGES_REQUESTED" in opinions.values():
        return "Changes were requested."
    if list(opinions.values()).count("APPROVED") < needed:
        return f"At least {needed} approving review is required by reviewers with write access."
    return None


def passed(repository: FakeRepository, sha: Sha, context: str, app: int | None) -> bool:
    """Every one of that name, and some at all."""
    statuses = [status for status in repository.reported.get(sha, {}).values() if status.context == context]
    runs = [run for run in repository.latest_runs(sha) if run.name == context]
    told = [status.state == "success" for status in statuses if app in (None, status.app)]
    told += [run.conclusion in PASSED for run in runs if app in (None, run.app_id)]
    return bool(told) and all(told)


def failing(repository: FakeRepository, change: Change) -> bool:
    states = {status.state for status in repository.reported.get(change.head, {}).values()}
    return bool(states - {"success"})


def merge(repository: FakeRepository, change: Change, method: str, expected: str | None, message: str) -> Sha:
    if expected is not None and expected != change.head:
        raise Refusal(409, "Head branch was modified. Review and try the merge again.")
    if method not in repository.methods:
        raise Refusal(405, f"{ALLOWED[method]} are not allowed on this repository.")
    tree = merged_tree(repository, change) if change.open and not change.draft else None
    if tree is None:
        raise Refusal(405, "Pull Request is not mergeable")
    words = lacking(repository, change)
    if words:
        raise Refusal(405, words)
    return _land(repository, change, method, tree, message)


def merged_tree(repository: FakeRepository, change: Change) -> str | None:
    return repository.origin.merged_tree(repository.origin.tip(change.base), change.head)


def _land(repository: FakeRepository, change: Change, method: str, tree: str, message: str) -> Sha:
    """A rebase of one commit: more than that no test needs."""
    origin, base = repository.origin, repository.origin.tip(change.base)
    parents = ["-p", base, *(("-p", change.head) if method == "merge" else ())]
    author = {"GIT_AUTHOR_NAME": change.author, "GIT_AUTHOR_EMAIL": f"{change.author}@example.org"}
    command = ["git", "--git-dir", origin.url, "commit-tree", tree, *parents, "-m", message]
    made = subprocess.run(command, stdout=subprocess.PIPE, check=True, env=ENVIRONMENT | author)
    commit = Sha(made.stdout.decode().strip())
    origin.set(change.base, commit)
    repository.merged(change, commit)
    repository.after_push({f"refs/heads/{change.base}": (base, commit)})
    return commit
