"""A soak of some seconds, all parts of the long one in it; `python -m tests.soak` runs for an hour."""

from pathlib import Path

import pytest

from tests.soak.grounds import opened
from tests.soak.pacing import Pacing
from tests.soak.report import line, table
from tests.soak.soak import Soak


@pytest.mark.long
def test_some_seconds_of_batched_traffic_leave_nothing_behind_and_break_no_promise(tmp_path: Path):
    folder = tmp_path / "soak"
    folder.mkdir()
    shown = list[str]()
    with opened(folder, seed=1) as grounds:
        figures, wrong = Soak(grounds, Pacing(16, settled=True)).run(4, 3.0, lambda each: shown.append(line(each)))
    assert wrong == []
    assert len(shown) == 4
    assert figures.states["merged"] > 20
    assert table(figures).row_count > 20
