"""A few rounds of the campaign, with every merge method; `make campaign` runs more."""

from pathlib import Path

import pytest

from tests.campaign.campaign import run_round
from tests.campaign.oracle import Oracle
from tests.support.repositories import Origin

SEEDS = (8, 9, 31)
"""In all of them authors change their head branches."""
SEED_WITH_A_HALF_LANDING = 725
"""The Git host refuses a part of a push."""


@pytest.mark.parametrize("seed", SEEDS)
def test_what_lands_is_what_plain_git_makes(seed: int):
    outcome = run_round(seed)
    assert outcome.faults == ()
    assert outcome.sizes


@pytest.mark.long
def test_a_landing_of_which_a_part_was_refused_is_completed_or_reported():
    assert run_round(SEED_WITH_A_HALF_LANDING).faults == ()


def test_oracle_finds_conflicts_and_merges(tmp_path: Path):
    origin = Origin.create(tmp_path / "origin.git")
    base = origin.commit("main", {"a": "1\n", "b": "1\n", ".gitattributes": "* merge=union\n"})
    ours, theirs = (origin.branch(name, base="main", files={"a": f"{name}\n"}) for name in ("ours", "theirs"))
    unrelated = origin.branch("unrelated", base="main", files={"b": "unrelated\n", "-x\n": "1"})
    oracle = Oracle(origin, tmp_path / "oracle")
    assert oracle.merged_tree(ours, theirs) is None
    assert oracle.rebased_commits(ours, theirs) is None
    merged = oracle.merged_tree(ours, unrelated)
    assert merged is not None
    assert [pick.tree for pick in oracle.rebased_commits(ours, unrelated) or ()] == [merged]
    assert oracle.merged_tree_with_heads(ours, [], unrelated) == merged
    assert oracle.merged_tree(ours, base) == oracle.tree(ours)


def test_oracle_keeps_the_revert_of_a_pull_request_ahead(tmp_path: Path):
    origin = Origin.create(tmp_path / "origin.git")
    origin.commit("main", {"a": "1\n"})
    below = origin.branch("below", base="main", files={"a": "2\n"})
    head = origin.branch("above", base="below", files={"a": "1\n"})
    squashed = origin.commit("main", {"a": "2\n"}, message="Below, squashed")
    oracle = Oracle(origin, tmp_path / "oracle")
    assert oracle.merged_tree(squashed, head) == oracle.tree(squashed)
    assert oracle.merged_tree_with_heads(squashed, [below], head) == oracle.tree(head)
