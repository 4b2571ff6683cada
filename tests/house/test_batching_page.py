"""The figures of thumb about batches are those that the engine gives."""

import re
from pathlib import Path

import pytest

from tests.house import batching_figures
from tests.house.batching_figures import GOOD_OF_A_HUNDRED, SIZES, cost

PAGE = (Path(__file__).parents[2] / "docs" / "batching-and-lanes.md").read_text()
TABLE = [tuple(row.split(" | ")) for row in re.findall(r"^\| (\d+% \| .+) \|$", PAGE, re.MULTILINE)]


def test_the_table_has_every_rate_and_every_size():
    assert [row[0] for row in TABLE] == [f"{rate}%" for rate in GOOD_OF_A_HUNDRED]
    assert {len(row) for row in TABLE} == {1 + len(SIZES)}


@pytest.mark.parametrize(("size", "cell"), list(zip(SIZES, TABLE[0][1:], strict=True))[2:])
def test_where_all_are_good_batches_cost_what_the_page_says(size: int, cell: str):
    counted = cost(size, bad=set())
    assert f"{counted.runs / batching_figures.PULL_REQUESTS:.2f}, {counted.rounds}" == cell


@pytest.mark.long
def test_batches_cost_what_the_page_says():
    assert batching_figures.rows() == TABLE
