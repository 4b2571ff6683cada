"""Reads what protects a branch: classic protection, and every ruleset that applies to it."""

from mergeyard.adapters.forges.calling import Caller
from mergeyard.adapters.forges.github.guards import Branch, Protection, RequiredCheck, Rule, Summary
from mergeyard.adapters.forges.github.names import place, segment
from mergeyard.adapters.forges.github.repositories import must_be_there
from mergeyard.domain import ours
from mergeyard.domain.repositories import Repo
from mergeyard.ports.host import HostRefused

NOT_IN_THIS_PLAN = "Upgrade to GitHub"
"""What private repositories hear for which nobody pays: there are no rules then."""


def contexts(checks: frozenset[RequiredCheck]) -> tuple[str, ...]:
    """What others must report: our own status is no test."""
    return tuple(sorted({check.context for check in checks} - {ours.STATUS}))


async def required_checks(caller: Caller, repo: Repo, branch: str) -> frozenset[RequiredCheck]:
    """The page of the branch tells them to everybody; that of its protection only to those who may administrate."""
    classic = (await _summary(caller, repo, branch)).required_status_checks
    of_rules = [rule.checks for rule in await _rules(caller, repo, branch)]
    return frozenset(check for checks in (classic.every if classic else (), *of_rules) for check in checks)


async def approvals(caller: Caller, repo: Repo, branch: str) -> int | None:
    """How many are needed; None where more is wanted than can be counted, or where we may not know."""
    classic, rules = await _classic(caller, repo, branch), await _rules(caller, repo, branch)
    wanted = [classic and classic.approvals, *(rule.approvals for rule in rules)]
    known = [count for count in wanted if count is not None]
    return max(known) if len(known) == len(wanted) else None


async def _summary(caller: Caller, repo: Repo, branch: str) -> Summary:
    page = await caller.get(f"{place(repo)}/branches/{segment(branch)}", Branch)
    if page is None:
        await must_be_there(caller, repo)
        return Summary(enabled=False)
    return page.protection


async def _classic(caller: Caller, repo: Repo, branch: str) -> Protection | None:
    """None where there is one that we may not see."""
    if not (await _summary(caller, repo, branch)).enabled:
        return Protection()
    try:
        return await caller.get(f"{place(repo)}/branches/{segment(branch)}/protection", Protection)
    except HostRefused:
        return None


async def _rules(caller: Caller, repo: Repo, branch: str) -> list[Rule]:
    path = f"{place(repo)}/rules/branches/{segment(branch)}"
    try:
        return await caller.every(path, list[Rule], {"per_page": 100})
    except HostRefused as refused:
        if NOT_IN_THIS_PLAN in str(refused):
            return []
        raise
