"""What protects a branch: the statuses that it requires, and the reviews without which nothing is merged into it."""

from collections.abc import Sequence

from mergeyard.adapters.forges.calling import Caller
from mergeyard.adapters.forges.gitea.places import place_of, place_of_branch, place_of_pull, segment
from mergeyard.adapters.forges.gitea.wire import Branch, Pull, Review, Rule
from mergeyard.domain import ours
from mergeyard.domain.repositories import Repo

UNKNOWN_RULE = Rule()


async def branch_of(caller: Caller, repo: Repo, name: str) -> Branch | None:
    return await caller.get_now(place_of_branch(repo, name), Branch)


def required(branch: Branch | None) -> tuple[str, ...]:
    """We never wait for ourselves. A pattern stays: nobody reports it, so nothing merges until names take its place."""
    if branch is None or not branch.enable_status_check:
        return ()
    return tuple(context for context in branch.status_check_contexts or () if context != ours.STATUS)


async def lacks_reviews(caller: Caller, repo: Repo, pull: Pull) -> bool:
    branch = await branch_of(caller, repo, pull.base.label)
    if branch is None:
        return False
    rule = await _rule_of(caller, repo, branch)
    if not branch.required_approvals and rule == UNKNOWN_RULE:
        return False
    reviews = await caller.every_now(f"{place_of_pull(repo, pull.number)}/reviews", list[Review], {"limit": 50})
    return _blocked(branch.required_approvals, rule, [each for each in reviews if each.official and not each.dismissed])


async def _rule_of(caller: Caller, repo: Repo, branch: Branch) -> Rule:
    name = branch.effective_branch_protection_name
    if not name:
        return UNKNOWN_RULE
    return await caller.get_now(f"{place_of(repo)}/branch_protections/{segment(name)}", Rule) or UNKNOWN_RULE


def _blocked(approvals: int, rule: Rule, reviews: Sequence[Review]) -> bool:
    states = [each.state for each in reviews if not (rule.ignore_stale_approvals and each.stale)]
    if states.count("APPROVED") < approvals:
        return True
    said = {each.state for each in reviews}
    rejected = rule.block_on_rejected_reviews and "REQUEST_CHANGES" in said
    asked = rule.block_on_official_review_requests and "REQUEST_REVIEW" in said
    return rejected or asked
