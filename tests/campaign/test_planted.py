"""Every planted bug is found in a round, which has no fault without it."""

import pytest
from msgspec import Struct

from mergeyard.service import landed_heads
from mergeyard.service.merge_audit.records import BranchHistory
from mergeyard.service.tasks.commit_builder import MergeCommitBuilder
from tests.campaign.campaign import run_round
from tests.simulation.planted import (
    Planted,
    is_always_so,
    planted,
    rebase_without_comparing,
    squash_without_a_file,
)


def _is_ours(*_: object) -> bool:
    return True


class Found(Struct, frozen=True):
    """A bug, a round in which it shows, and what finds it there."""

    planted: Planted
    seed: int
    by: str = "s16"


LOST_FILE = Found(Planted("a squash without a file", MergeCommitBuilder, "_squash", squash_without_a_file), 1)
REVERTED = Found(Planted("a reverted change counts as landed", landed_heads, "_is_there", is_always_so), 49)
DIFFERS = Found(Planted("a rebase that differs", MergeCommitBuilder, "_rebase", rebase_without_comparing), 53)
CLAIMED = Found(Planted("a claim of a stranger counts", BranchHistory, "has_own_committer", _is_ours), 52, "audit")
LONG = [pytest.param(found, marks=pytest.mark.long) for found in (REVERTED, DIFFERS, CLAIMED)]


@pytest.mark.parametrize("found", [LOST_FILE, *LONG], ids=lambda found: found.planted.bug)
def test_planted_bug_is_found(found: Found):
    with planted(found.planted):
        faults = run_round(found.seed).faults
    assert any(found.by in fault for fault in faults), faults
    assert run_round(found.seed).faults == ()
