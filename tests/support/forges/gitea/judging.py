"""Judges whether something can be merged, as Gitea does: by git, by the branch's rule, by reviews and statuses."""

import subprocess
from fnmatch import fnmatchcase

from tests.support.forges.gitea.nouns import Account, Pull, Repository, Review, Rule, Status
from tests.support.forges.gitea.world import Refusal, World, rule_of

PASSING = ("success", "skipped")


def holds(repository: Repository, tip: str, commit: str) -> bool:
    try:
        repository.origin.run("merge-base", "--is-ancestor", commit, tip)
    except subprocess.CalledProcessError:
        return False
    return True


def is_mergeable(repository: Repository, pull: Pull) -> bool:
    if pull.checking or pull.draft:
        return False
    tip = repository.origin.ref(pull.base)
    return pull.merged or (tip is not None and repository.origin.merged_tree(tip, pull.head) is not None)


def latest_statuses(repository: Repository, sha: str) -> list[Status]:
    return [*{status.context: status for status in repository.statuses if status.sha == sha}.values()]


def check_may_merge(world: World, repository: Repository, pull: Pull, doer: Account) -> None:
    """Also for those who only mark it as merged."""
    if pull.merged:
        raise Refusal(405, "The PR is already merged")
    if pull.state != "open":
        raise Refusal(404, "not found")
    rule = rule_of(repository, pull.base)
    listed = rule and rule.enable_merge_whitelist and doer.login not in rule.merge_whitelist_usernames
    if listed or not world.may(repository, doer, "write"):
        raise Refusal(405, "User not allowed to merge PR")


def check_is_ready(repository: Repository, pull: Pull) -> None:
    _check_state(repository, pull)
    _check_rule(repository, pull)
    if any(blocker.pull.state == "open" for blocker in pull.blockers):
        raise Refusal(500, "")


def _check_state(repository: Repository, pull: Pull) -> None:
    if pull.draft:
        raise Refusal(405, "Work in progress PRs cannot be merged")
    if not is_mergeable(repository, pull):
        raise Refusal(405, "Please try again later")


def _check_rule(repository: Repository, pull: Pull) -> None:
    rule = rule_of(repository, pull.base)
    if rule is None:
        return
    if rule.enable_status_check and not _statuses_pass(repository, pull, rule):
        raise Refusal(405, "not ready to be merged: Not all required status checks successful")
    reviews = [review for review in pull.reviews if review.official]
    if len(_approvals(pull, rule, reviews)) < rule.required_approvals:
        raise Refusal(405, "not ready to be merged: Does not have enough approvals")
    if rule.block_on_rejected_reviews and any(review.state == "REQUEST_CHANGES" for review in reviews):
        raise Refusal(405, "not ready to be merged: There are requested changes")


def _statuses_pass(repository: Repository, pull: Pull, rule: Rule) -> bool:
    found = latest_statuses(repository, pull.head)
    wanted = [[each for each in found if fnmatchcase(each.context, name)] for name in rule.status_check_contexts]
    return bool(found) and all(each and all(one.state in PASSING for one in each) for each in wanted)


def _approvals(pull: Pull, rule: Rule, reviews: list[Review]) -> list[Review]:
    fresh = [each for each in reviews if not (rule.ignore_stale_approvals and each.commit != pull.head)]
    return [review for review in fresh if review.state == "APPROVED"]
