"""A soak of a few seconds with all parts of the long one; `python -m tests.soak` runs for an hour."""

from pathlib import Path

import pytest

from tests.soak.environment import a_soak_environment
from tests.soak.load_control import LoadController
from tests.soak.report import format_interval, result_table
from tests.soak.soak import Soak


@pytest.mark.long
def test_short_batched_traffic_leaves_nothing_behind_and_breaks_no_promise(tmp_path: Path):
    folder = tmp_path / "soak"
    folder.mkdir()
    shown = list[str]()
    with a_soak_environment(folder, seed=1) as environment:
        figures, wrong = Soak(environment, LoadController(16, settled=True)).run(
            4, 3.0, lambda each: shown.append(format_interval(each))
        )
    assert wrong == []
    assert len(shown) == 4
    assert figures.states["merged"] > 20
    assert result_table(figures).row_count > 20
