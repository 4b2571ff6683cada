"""The page about errors tells of every code, under its status, and of no other."""

import re
from pathlib import Path

from mergeyard.api.errors import KINDS
from mergeyard.service.errors import Code

PAGE = (Path(__file__).parents[2] / "docs" / "errors.md").read_text()


def sections() -> list[tuple[str, str]]:
    """Every code on the page, with what is said about it."""
    return re.findall(r"^### `(\w+)`\n\n(.*?)(?=\n\n#|\Z)", PAGE, re.MULTILINE | re.DOTALL)


def statuses_above(code: Code) -> range:
    before = PAGE[: PAGE.index(f"### `{code}`")]
    heading = re.findall(r"^## (\d+)(?: (?:and|to) (\d+))?:", before, re.MULTILINE)[-1]
    return range(int(heading[0]), int(heading[1] or heading[0]) + 1)


def test_every_code_is_documented_once_and_no_other():
    assert sorted(code for code, _ in sections()) == sorted(Code)


def test_every_code_has_a_paragraph():
    assert [code for code, words in sections() if len(words.split()) < 8] == []


def test_every_code_stands_under_its_status():
    assert [code for code in Code if KINDS[code].status not in statuses_above(code)] == []


def test_every_code_is_in_the_table_of_kinds():
    assert set(KINDS) == set(Code)
