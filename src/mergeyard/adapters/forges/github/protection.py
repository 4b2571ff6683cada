"""Reads what protects a branch: classic protection, and every ruleset that applies to it."""

from msgspec import Struct

from mergeyard.adapters.forges.calling import Caller
from mergeyard.adapters.forges.github import wire
from mergeyard.adapters.forges.github.callers import Identity
from mergeyard.adapters.forges.github.guards import Branch, Protection, RequiredCheck, Rule, Ruleset, Summary
from mergeyard.adapters.forges.github.names import place, segment
from mergeyard.adapters.forges.github.repositories import must_be_there
from mergeyard.domain import ours
from mergeyard.domain.repositories import Repo
from mergeyard.ports.host import HostRefused

NOT_IN_THIS_PLAN = "Upgrade to GitHub"
"""What private repositories hear for which nobody pays: there are no rules then."""

CLASSIC = "the branch protection rule"


class Bypass(Struct, frozen=True):
    """A rule that requires reviews, and how our account gets past it."""

    rule: str
    is_certain: bool
    """False where GitHub does not show us whether we are on its bypass list."""
    as_admin: bool = False
    """The rule does not apply to administrators, and our account is one."""


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


async def review_bypasses(caller: Caller, repo: Repo, branch: str, us: Identity) -> list[Bypass]:
    """The rules of the branch that require reviews and that our account can bypass, or may be able to."""
    wanting = {rule.ruleset_id for rule in await _rules(caller, repo, branch) if rule.requires_reviews}
    found = [await _bypass_of_ruleset(caller, repo, ruleset, us) for ruleset in sorted(wanting - {None}, key=str)]
    found.append(await _bypass_of_classic(caller, repo, branch, us))
    return [bypass for bypass in found if bypass is not None]


async def _bypass_of_ruleset(caller: Caller, repo: Repo, number: int | None, us: Identity) -> Bypass | None:
    ruleset = await caller.get(f"{place(repo)}/rulesets/{number}", Ruleset)
    if ruleset is None:
        return Bypass(f"ruleset {number}", is_certain=False)
    can_bypass = ruleset.can_be_bypassed_by(us.app_id)
    return None if can_bypass is False else Bypass(f"the ruleset {ruleset.name}", is_certain=can_bypass is True)


async def _bypass_of_classic(caller: Caller, repo: Repo, branch: str, us: Identity) -> Bypass | None:
    classic = await _classic(caller, repo, branch)
    if classic is None:
        return Bypass(CLASSIC, is_certain=False)
    reviews = classic.required_pull_request_reviews
    if not reviews.are_required:
        return None
    if us.login in reviews.bypass_pull_request_allowances.logins:
        return Bypass(CLASSIC, is_certain=True)
    if us.app_id is not None or classic.enforce_admins.enabled:
        return None
    page = await caller.get(place(repo), wire.Repository)
    return Bypass(CLASSIC, is_certain=True, as_admin=True) if page and page.permissions.get("admin") else None


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
