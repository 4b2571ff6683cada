"""The page about operations tells the numbers that the code has."""

import re

from mergeyard.adapters.store_postgres.connecting import CONNECTIONS
from mergeyard.cli.server import SECONDS_TO_FINISH
from mergeyard.service.hearing import LOOK_EVERY
from mergeyard.service.replica import HEAD_START, LASTING, REPORT_EVERY
from mergeyard.service.watch import INTERVAL
from tests.deploy.files import OPERATIONS

PAGE = OPERATIONS.read_text()
RESERVED_BY_POSTGRES = 3
POSTGRES_DEFAULT = 100


def row(start: str) -> list[str]:
    (cells,) = re.findall(rf"^\| {start} \|(.*)\|$", PAGE, re.MULTILINE)
    return [cell.strip(" *") for cell in cells.split("|")]


def numbers(start: str) -> list[int]:
    """The first number of each cell."""
    return [int(re.findall(r"[\d,]+", cell)[0].replace(",", "")) for cell in row(start)]


def test_every_number_is_the_one_in_the_code():
    told = dict(re.findall(r"^\| `([A-Z_]+)` \| (.+?) \|", PAGE, re.MULTILINE))
    assert told == {
        "CONNECTIONS": f"{CONNECTIONS}",
        "LASTING": f"{LASTING} ms",
        "REPORT_EVERY": f"{REPORT_EVERY} ms",
        "HEAD_START": f"{HEAD_START} ms",
        "LOOK_EVERY": f"{LOOK_EVERY} ms",
        "INTERVAL": f"{INTERVAL} ms",
        "SECONDS_TO_FINISH": f"{SECONDS_TO_FINISH} s",
    }


def test_the_limits_follow_from_the_numbers():
    replicas, repositories = (1, 10, 100), 10_000
    assert numbers("connections to PostgreSQL") == [(CONNECTIONS + 1) * each for each in replicas]
    rows_read = repositories * 1000 // LOOK_EVERY
    assert numbers("rows read per second, by all together, to find what was missed") == [rows_read] * 3
    assert numbers("repositories for each worker") == [repositories // each for each in replicas]


def test_a_death_is_over_within_fifteen_seconds():
    assert LASTING + REPORT_EVERY + HEAD_START <= 15_000


def test_so_many_replicas_fit_the_default_of_postgresql():
    assert (POSTGRES_DEFAULT - RESERVED_BY_POSTGRES) // (CONNECTIONS + 1) == 8
    assert "**Eight replicas** fit PostgreSQL's default of 100 connections" in PAGE


def test_nothing_is_left_to_be_measured():
    assert "TODO" not in PAGE
