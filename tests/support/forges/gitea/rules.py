"""Whether a pull request can be merged, as Gitea decides it: git, branch protection, reviews and statuses."""

import subprocess
from fnmatch import fnmatchcase

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


def check_merge_readiness(repository: Repository, pull: PullRequest) -> None:
    _check_state(repository, pull)
    _check_rule(repository, pull)
    if any(blocker.pull_request.state == "open" for blocker in pull.blockers):
        raise ApiError(500, "")


def _check_state(repository: Repository, pull: PullRequest) -> None:
    if pull.draft:
        raise ApiError(405, "Work in progress PRs cannot be merged")
    if not is_mergeable(repository, pull):
        raise ApiError(405, "Please try again later")


def _check_rule(repository: Repository, pull: PullRequest) -> None:
    rule = find_rule(repository, pull.base)
    if rule is None:
        return
    if rule.enable_status_check and not _statuses_pass(repository, pull, rule):
        raise ApiError(405, "not ready to be merged: Not all required status checks successful")
    reviews = [review for review in pull.reviews if review.official]
    if len(_approvals(pull, rule, reviews)) < rule.required_approvals:
        raise ApiError(405, "not ready to be merged: Does not have enough approvals")
    if rule.block_on_rejected_reviews and any(review.state == "REQUEST_CHANGES" for review in reviews):
        raise ApiError(405, "not ready to be merged: There are requested changes")


def _statuses_pass(repository: Repository, pull: PullRequest, rule: Rule) -> bool:
    found = latest_statuses(repository, pull.head)
    required = [[each for each in found if fnmatchcase(each.context, name)] for name in rule.status_check_contexts]
    return bool(found) and all(each and all(one.state in PASSING for one in each) for each in required)


def _approvals(pull: PullRequest, rule: Rule, reviews: list[Review]) -> list[Review]:
    fresh = [each for each in reviews if not (rule.ignore_stale_approvals and each.commit != pull.head)]
    return [review for review in fresh if review.state == "APPROVED"]
