"""The page on security names places and tests that are there, and every boundary of the picture has its chapter."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text()
PICTURE = (ROOT / "docs" / "pictures" / "boundaries.svg").read_text()
CHAPTERS = dict(re.findall(r"^### (\d+)\. [^\n]+\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL))
ROWS = re.findall(r"^\| (.+) \| (.+) \| (.*`tests/.+`) \|$", PAGE, re.MULTILINE)

every_chapter = pytest.mark.parametrize("chapter", CHAPTERS)


def spans(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_boundaries_are_counted_and_each_is_in_the_picture():
    assert list(CHAPTERS) == [str(number) for number in range(1, 15)]
    assert set(re.findall(r'class="mid small number">(\d+)<', PICTURE)) == CHAPTERS.keys()


@every_chapter
def test_a_boundary_says_what_crosses_it_who_does_harm_what_stands_there_and_what_is_left_over(chapter: str):
    text = CHAPTERS[chapter]
    parts = [text.find(part) for part in ("**Crosses it:**", "**Harm:**", "| what stands there |", "**Left over:**")]
    assert parts == sorted(parts)
    assert parts[0] >= 0


@pytest.mark.parametrize("path", sorted({path for _, where, _ in ROWS for path in spans(where)}))
def test_a_place_is_there(path: str):
    assert any((root / path).is_file() for root in (ROOT, ROOT / "src" / "mergeyard"))


@pytest.mark.parametrize("named", sorted({named for _, _, shown_by in ROWS for named in spans(shown_by)}))
def test_a_test_is_there(named: str):
    path, _, test = named.partition("::")
    assert re.search(rf"def {test}\(" if test else r"def test_", (ROOT / path).read_text())


def test_whatever_stands_somewhere_is_in_the_code_and_shown():
    assert [stands for stands, where, shown_by in ROWS if not spans(where) or not spans(shown_by)] == []
    assert len(ROWS) == sum(text.count("\n| ") - 1 for text in CHAPTERS.values())
