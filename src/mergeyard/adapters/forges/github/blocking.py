"""Tells whether a pull request is blocked by nothing but our own status, which waits for the queue."""

from mergeyard.adapters.forges.calling import Caller
from mergeyard.adapters.forges.github import people, protection, wire
from mergeyard.adapters.forges.github.checks import statuses
from mergeyard.adapters.forges.github.names import place
from mergeyard.adapters.forges.github.ties import tied
from mergeyard.domain import ours
from mergeyard.domain.ids import Sha
from mergeyard.domain.repositories import Repo
from mergeyard.domain.states import SATISFIED
from mergeyard.ports.clock import Clock

APPROVED, CHANGES_REQUESTED = "APPROVED", "CHANGES_REQUESTED"
OPINIONS = frozenset({APPROVED, CHANGES_REQUESTED, "DISMISSED"})


async def is_blocked_by_us_alone(caller: Caller, repo: Repo, pull: wire.Pull, clock: Clock) -> bool:
    """In doubt it is not: GitHub says only that something is missing, and not what."""
    required = await protection.required_checks(caller, repo, pull.base.ref)
    if not any(check.context == ours.STATUS for check in required):
        return False
    reported = await statuses(caller, repo, Sha(pull.head.sha), clock, tied(required))
    passed = {status.context for status in reported if status.check in SATISFIED}
    return passed.issuperset(protection.contexts(required)) and await _is_approved(caller, repo, pull)


async def _is_approved(caller: Caller, repo: Repo, pull: wire.Pull) -> bool:
    needed = await protection.approvals(caller, repo, pull.base.ref)
    if needed is None:
        return False
    opinions = await _opinions(caller, repo, pull.number)
    if CHANGES_REQUESTED in opinions.values():
        return False
    approving = [person for person, opinion in opinions.items() if opinion == APPROVED]
    return await _writers(caller, repo, approving) >= needed


async def _opinions(caller: Caller, repo: Repo, number: int) -> dict[str, str]:
    """The last of each person; those who have left are one, whose approval counts for nothing."""
    path = f"{place(repo)}/pulls/{number}/reviews"
    reviews = await caller.every(path, list[wire.Review], {"per_page": 100})
    told = [review for review in reviews if review.state in OPINIONS]
    return {review.user.login if review.user else "": review.state for review in told}


async def _writers(caller: Caller, repo: Repo, persons: list[str]) -> int:
    """Everybody may approve, and only theirs count."""
    return len([person for person in persons if await people.may_write(caller, repo, person)])
