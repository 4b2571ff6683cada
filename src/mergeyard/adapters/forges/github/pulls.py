"""Reads pull requests, and what GitHub thinks of merging them."""

from mergeyard.adapters.forges.calling import Caller
from mergeyard.adapters.forges.github import wire
from mergeyard.adapters.forges.github.blocking import is_blocked_by_us_alone
from mergeyard.adapters.forges.github.names import place
from mergeyard.adapters.forges.github.repositories import must_be_there
from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.pulls import PullRequest
from mergeyard.domain.repositories import Repo
from mergeyard.domain.states import Mergeability
from mergeyard.ports.clock import Clock

UP_TO_US = frozenset({"clean", "unstable", "has_hooks", "behind", "draft"})
"""The queue brings it up to date and runs the checks itself; that it is a draft is told elsewhere."""


async def read(caller: Caller, repo: Repo, number: PrNumber) -> wire.Pull | None:
    """Also with the last of the budget: nothing lands unread. Only where there really is none is it None."""
    pull = await caller.get_now(f"{place(repo)}/pulls/{number}", wire.Pull)
    if pull is None:
        await must_be_there(caller, repo)
    return pull


async def shown(caller: Caller, repo: Repo, number: PrNumber, clock: Clock) -> PullRequest | None:
    pull = await read(caller, repo, number)
    if pull is None:
        return None
    opinion = mergeability(pull)
    if is_blocked(pull) and await is_blocked_by_us_alone(caller, repo, pull, clock):
        opinion = Mergeability.MERGEABLE
    return PullRequest(
        number=number,
        head=Sha(pull.head.sha),
        base=pull.base.ref,
        branch=pull.head.ref,
        title=pull.title,
        author=pull.user.login if pull.user else "",
        is_open=pull.state == "open",
        draft=pull.draft,
        fork=pull.fork,
        mergeability=opinion,
        merged_into=pull.base.ref if pull.merged_at else None,
    )


def mergeability(pull: wire.Pull) -> Mergeability:
    if pull.state != "open":
        return Mergeability.UNKNOWN
    if pull.mergeable is None or pull.mergeable_state == "unknown":
        return Mergeability.CHECKING
    fine = pull.mergeable and pull.mergeable_state in UP_TO_US
    return Mergeability.MERGEABLE if fine else Mergeability.NOT_MERGEABLE


def is_blocked(pull: wire.Pull) -> bool:
    """By rules of its base, and not by a conflict."""
    return pull.state == "open" and pull.mergeable is True and pull.mergeable_state == "blocked"
