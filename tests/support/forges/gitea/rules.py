"""Whether a pull request can be merged, as Gitea decides it: git, branch protection, reviews and statuses."""

import re
import subprocess
from base64 import b64decode
from collections.abc import Callable
from fnmatch import fnmatchcase

from mergeyard.domain.ids import Sha
from tests.support.forges.git_server import GitRequest, PushRefusal, RefUpdates
from tests.support.forges.gitea.world import (
    Account,
    ApiError,
    PullRequest,
    Repository,
    Review,
    Rule,
    Status,
    World,
    find_rule,
)

PASSING = ("success", "skipped")
COMMITTER_PATTERN = re.compile(r"^committer [^<]*<([^>]*)>", re.MULTILINE)


def contains(repository: Repository, tip: str, commit: str) -> bool:
    try:
        repository.origin.run("merge-base", "--is-ancestor", commit, tip)
    except subprocess.CalledProcessError:
        return False
    return True


def is_mergeable(repository: Repository, pull: PullRequest) -> bool:
    if pull.mergeability_unknown or pull.draft:
        return False
    tip = repository.origin.ref(pull.base)
    return pull.merged or (tip is not None and repository.origin.merged_tree(tip, pull.head) is not None)


def latest_statuses(repository: Repository, sha: str) -> list[Status]:
    return [*{status.context: status for status in repository.statuses if status.sha == sha}.values()]


def check_merge_permission(world: World, repository: Repository, pull: PullRequest, account: Account) -> None:
    """Needed also to mark a pull request as merged."""
    if pull.merged:
        raise ApiError(405, "The PR is already merged")
    if pull.state != "open":
        raise ApiError(404, "not found")
    rule = find_rule(repository, pull.base)
    excluded = rule and rule.enable_merge_whitelist and account.login not in rule.merge_whitelist_usernames
    if excluded or not world.has_role(repository, account, "write"):
        raise ApiError(405, "User not allowed to merge PR")


def check_merge_readiness(world: World, repository: Repository, pull: PullRequest, by: Account, *, force: bool) -> None:
    """An administrator can override the rule, unless it says otherwise."""
    _check_state(repository, pull)
    rule = find_rule(repository, pull.base)
    if rule and not (force and world.has_role(repository, by, "admin") and not rule.block_admin_merge_override):
        _check_rule(repository, pull, rule)
    if any(blocker.pull_request.state == "open" for blocker in pull.blockers):
        raise ApiError(500, "")


def _check_state(repository: Repository, pull: PullRequest) -> None:
    if pull.draft:
        raise ApiError(405, "Work in progress PRs cannot be merged")
    if not is_mergeable(repository, pull):
        raise ApiError(405, "Please try again later")


def _check_rule(repository: Repository, pull: PullRequest, rule: Rule) -> None:
    if rule.enable_status_check and not _statuses_pass(repository, pull, rule):
        raise ApiError(405, "not ready to be merged: Not all required status checks successful")
    reviews = [review for review in pull.reviews if review.official and not review.dismissed]
    if len(_approvals(pull, rule, reviews)) < rule.required_approvals:
        raise ApiError(405, "not ready to be merged: Does not have enough approvals")
    if rule.block_on_rejected_reviews and any(review.state == "REQUEST_CHANGES" for review in reviews):
        raise ApiError(405, "not ready to be merged: There are requested changes")
    if rule.block_on_official_review_requests and any(review.state == "REQUEST_REVIEW" for review in reviews):
        raise ApiError(405, "not ready to be merged: There are official review requests")
    if rule.block_on_outdated_branch and not contains(repository, pull.head, repository.origin.tip(pull.base)):
        raise ApiError(405, "not ready to be merged: The head branch is behind the base branch")
    if any(is_protected_file(rule, path) for path in changed_files(repository, pull)):
        raise ApiError(405, "not ready to be merged: Changed protected files")


def _statuses_pass(repository: Repository, pull: PullRequest, rule: Rule) -> bool:
    found = latest_statuses(repository, pull.head)
    required = [[each for each in found if fnmatchcase(each.context, name)] for name in rule.status_check_contexts]
    return bool(found) and all(each and all(one.state in PASSING for one in each) for each in required)


def _approvals(pull: PullRequest, rule: Rule, reviews: list[Review]) -> list[Review]:
    fresh = [each for each in reviews if not (rule.ignore_stale_approvals and each.commit != pull.head)]
    return [review for review in fresh if review.state == "APPROVED"]


def is_official_reviewer(world: World, repository: Repository, pull: PullRequest, account: Account) -> bool:
    rule = find_rule(repository, pull.base)
    if rule and rule.enable_approvals_whitelist:
        return account.login in rule.approvals_whitelist_username
    return world.has_role(repository, account, "write")


def changed_files(repository: Repository, pull: PullRequest) -> list[str]:
    """Empty if the head branch was moved to a commit of the base before the pull request was merged."""
    changes = repository.origin.run("diff", "--name-only", f"{pull.merge_base}..{pull.head}")
    return changes.decode().splitlines()


def own_commits(repository: Repository, pull: PullRequest) -> list[Sha]:
    """Newest first."""
    return [Sha(line) for line in repository.origin.run("rev-list", f"{pull.merge_base}..{pull.head}").decode().split()]


def read_headers(repository: Repository, commit: str) -> str:
    return repository.origin.run("cat-file", "commit", commit).decode(errors="replace").partition("\n\n")[0]


def read_signature(repository: Repository, commit: str) -> str:
    """In armor; empty if the commit has none."""
    first, *others = read_headers(repository, commit).partition("\ngpgsig ")[2].split("\n")
    return "\n".join([first, *(line[1:] for line in others if line.startswith(" "))])


def read_committer(repository: Repository, commit: str) -> str:
    found = COMMITTER_PATTERN.search(read_headers(repository, commit))
    return found[1] if found else ""


def is_verified(world: World, repository: Repository, commit: str) -> bool:
    """Signed with a verified key of the account that has the address of the committer."""
    address = read_committer(repository, commit)
    lines = [line.strip() for line in read_signature(repository, commit).split("\n")]
    signature = b64decode("".join(line for line in lines if line and line[0] not in "-=" and ":" not in line))
    accounts = [each for each in world.accounts.values() if each.email == address]
    return any(key.mark in signature for account in accounts for key in account.keys if key.verified)


def refuse_push(
    world: World, request: GitRequest, updates: RefUpdates, store_objects: Callable[[], None]
) -> dict[str, PushRefusal]:
    """The updates of protected branches that Gitea refuses to every account."""
    repository, found = world.repositories[request.repository.lower()], dict[str, str]()
    for ref, (old, new) in updates.items():
        branch = ref.removeprefix("refs/heads/")
        rule = find_rule(repository, branch)
        if rule is None:
            continue
        if new is None:
            found[ref] = f"Branch {branch} is protected from deletion"
            continue
        store_objects()
        commits = repository.origin.run("rev-list", new, *([f"^{old}"] if old else [])).decode().split()
        if old is not None and not contains(repository, new, old):
            found[ref] = f"Branch {branch} is protected from force push"
        elif rule.require_signed_commits:
            unverified = next((commit for commit in commits if not is_verified(world, repository, commit)), None)
            if unverified:
                found[ref] = f"Branch {branch} is protected from unverified commit {unverified}"
    return {
        ref: PushRefusal("pre-receive hook declined", ["", f"Gitea: {message}", ""]) for ref, message in found.items()
    }


def is_protected_file(rule: Rule, path: str) -> bool:
    """Of the patterns only stars are supported."""
    patterns = [pattern.strip().lower() for pattern in rule.protected_file_patterns.split(";") if pattern.strip()]
    expressions = (re.escape(each).replace(r"\*\*", ".*").replace(r"\*", "[^./]*") for each in patterns)
    return any(re.fullmatch(expression, path.lower()) for expression in expressions)
