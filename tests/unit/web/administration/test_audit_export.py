"""A file of the audit log is read by spreadsheets, which must not calculate what somebody typed in."""

import csv
from io import StringIO

import pytest

from mergeyard.web.administration.audit_export import csv_head, csv_lines, harmless
from mergeyard.web.administration.audit_words import Row


def a_row(actor: str) -> Row:
    return Row(seq=7, time="2026-11-15T00:00:00Z", actor=actor, token=None, kind="PrChanged", pull_request=5)


@pytest.mark.parametrize("formula", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1"])  # noqa: RUF001
def test_what_looks_like_a_formula_becomes_text(formula: str):
    assert harmless(formula) == f"'{formula}"


@pytest.mark.parametrize("value", ["", "ada", "1-1", "a=b", 5, -5, None])
def test_everything_else_stays_as_it_is(value: object):
    assert harmless(value) is value


@pytest.mark.parametrize("actor", ["ada", 'a "quoted", name', "line\r\nbreak", "=cmd|' /C calc'!A0", "größe 試"])
def test_a_row_comes_back_as_it_was_written(actor: str):
    written = StringIO((csv_head() + csv_lines([a_row(actor)])).decode(), newline="")
    (row,) = csv.DictReader(written)
    assert (row["seq"], row["actor"].removeprefix("'"), row["pull_request"], row["from"]) == ("7", actor, "5", "")
