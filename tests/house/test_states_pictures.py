"""The pictures of states draw every way that the tables hold, and no other."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.house.states_page import PAGE, Arrow, pr_arrows, queue_arrows, run_arrows

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"

every_picture = pytest.mark.parametrize(
    ("name", "arrows"),
    [("pull-request-states", pr_arrows), ("queue-states", queue_arrows), ("run-states", run_arrows)],
)


@every_picture
def test_every_way_between_two_states_is_drawn_once_and_no_other(name: str, arrows: Callable[[], set[Arrow]]):
    drawn = re.findall(r'data-from="(.+?)" data-to="(.+?)"', (PICTURES / f"{name}.svg").read_text())
    assert len(drawn) == len(set(drawn))
    assert set(drawn) == arrows()


@every_picture
def test_the_page_shows_the_picture(name: str, arrows: Callable[[], set[Arrow]]):
    assert arrows()
    assert f"](pictures/{name}.svg)" in PAGE.read_text()
