"""A few rounds of the campaign, with every merge method; the rest is for `make campaign`."""

from pathlib import Path

import pytest

from tests.campaign.campaign import play_once
from tests.campaign.oracle import Oracle
from tests.support.repositories import Origin

EVERY_METHOD = (8, 9, 10)
FOR_LONG = range(8)


@pytest.mark.parametrize("seed", EVERY_METHOD)
def test_what_lands_is_what_git_makes_of_it(seed: int):
    outcome = play_once(seed)
    assert outcome.faults == ()
    assert outcome.sizes


@pytest.mark.long
@pytest.mark.parametrize("seed", FOR_LONG)
def test_what_lands_is_what_git_makes_of_it_round_after_round(seed: int):
    assert play_once(seed).faults == ()


def test_the_oracle_tells_a_conflict_from_a_merge(tmp_path: Path):
    origin = Origin.made(tmp_path / "origin.git")
    base = origin.commit("main", {"a": "1\n", "b": "1\n", ".gitattributes": "* merge=union\n"})
    ours, theirs = (origin.branch(name, upon="main", files={"a": f"{name}\n"}) for name in ("ours", "theirs"))
    apart = origin.branch("apart", upon="main", files={"b": "apart\n", "-x\n": "1"})
    oracle = Oracle(origin, tmp_path / "oracle")
    assert oracle.merged(ours, theirs) is None
    assert oracle.rebased(ours, theirs) is None
    merged = oracle.merged(ours, apart)
    assert merged is not None
    assert [pick.tree for pick in oracle.rebased(ours, apart) or ()] == [merged]
    assert oracle.merged_upon(ours, [], apart) == merged
    assert oracle.merged(ours, base) == oracle.tree(ours)


def test_the_oracle_keeps_what_one_takes_back_of_the_one_beneath_it(tmp_path: Path):
    origin = Origin.made(tmp_path / "origin.git")
    origin.commit("main", {"a": "1\n"})
    below = origin.branch("below", upon="main", files={"a": "2\n"})
    head = origin.branch("upon", upon="below", files={"a": "1\n"})
    squashed = origin.commit("main", {"a": "2\n"}, message="Below, squashed")
    oracle = Oracle(origin, tmp_path / "oracle")
    assert oracle.merged(squashed, head) == oracle.tree(squashed)
    assert oracle.merged_upon(squashed, [below], head) == oracle.tree(head)
