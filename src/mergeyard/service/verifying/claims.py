"""Reads off a commit whose landing it calls itself, and finds all commits that one landing made."""

from collections.abc import Mapping

from msgspec import Struct

from mergeyard.domain.ids import PrNumber, RunId, Sha
from mergeyard.ports.git import Commit
from mergeyard.service import wording


class Claim(Struct, frozen=True):
    number: PrNumber
    run: RunId | None
    """None: it calls itself merged without a run."""


def claim_of(commit: Commit) -> Claim | None:
    """By the last paragraph, which is ours: what somebody quotes further up claims nothing."""
    last = commit.message.rstrip().rpartition("\n\n")[2]
    number = wording.pull_request_of(last)
    return None if number is None else Claim(number, wording.run_of(last))


def commits_of(last: Sha, known: Mapping[Sha, Commit]) -> tuple[Commit, ...]:
    """This one and those beneath it that claim the same, the last first: a rebased pull request has several."""
    commit = known[last]
    claim, found = claim_of(commit), [commit]
    while claim is not None and commit.parents:
        beneath = known.get(commit.parents[0])
        if beneath is None or claim_of(beneath) != claim:
            break
        found.append(beneath)
        commit = beneath
    return tuple(found)
