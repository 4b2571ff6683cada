"""What we call ourselves at a host."""

from mergeyard.domain import ours


def test_our_branches_bear_the_name_of_our_status():
    assert f"{ours.STATUS}/" == ours.BRANCHES
