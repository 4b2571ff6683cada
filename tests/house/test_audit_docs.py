"""The page about the audit log names every kind of entry and every column, and no other."""

import re
from pathlib import Path
from typing import get_args

from mergeyard.domain.journal import Kept
from mergeyard.web.administration.audit_words import Row

PAGE = (Path(__file__).parents[2] / "docs" / "audit.md").read_text()


def table(heading: str) -> list[str]:
    """What stands in the first column of the first table behind these words."""
    rows = re.search(r"\n\|[^\n]+\n\|-[^\n]+\n((?:\|.+\n)+)", PAGE[PAGE.index(heading) :])
    assert rows is not None
    return [name for row in rows[1].splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1])]


def test_every_kind_of_entry_is_described():
    assert sorted(table("## What is in it")) == sorted(kind.__name__ for kind in get_args(Kept))


def test_every_column_is_described_in_its_order():
    assert table("**Export**") == list(Row.__struct_encode_fields__)
