"""The operations page has the numbers of the code."""

import re

from mergeyard.adapters.store_postgres.connection import POOL_SIZE
from mergeyard.cli.server import SHUTDOWN_TIMEOUT_S
from mergeyard.service.leases import HEARTBEAT_INTERVAL_MS, LEASE_TTL_MS, MIRROR_HEAD_START_MS
from mergeyard.service.poller import POLL_INTERVAL_MS
from mergeyard.service.replica import QUEUE_POLL_INTERVAL_MS
from tests.deploy.files import OPERATIONS

PAGE = OPERATIONS.read_text()
RESERVED_BY_POSTGRES = 3
POSTGRES_MAX_CONNECTIONS = 100


def row(start: str) -> list[str]:
    (cells,) = re.findall(rf"^\| {start} \|(.*)\|$", PAGE, re.MULTILINE)
    return [cell.strip(" *") for cell in cells.split("|")]


def numbers(start: str) -> list[int]:
    """The first number of each cell."""
    return [int(re.findall(r"[\d,]+", cell)[0].replace(",", "")) for cell in row(start)]


def test_page_has_the_constants_of_the_code():
    listed = dict(re.findall(r"^\| `([A-Z_]+)` \| (.+?) \|", PAGE, re.MULTILINE))
    assert listed == {
        "POOL_SIZE": f"{POOL_SIZE}",
        "LEASE_TTL_MS": f"{LEASE_TTL_MS} ms",
        "HEARTBEAT_INTERVAL_MS": f"{HEARTBEAT_INTERVAL_MS} ms",
        "MIRROR_HEAD_START_MS": f"{MIRROR_HEAD_START_MS} ms",
        "QUEUE_POLL_INTERVAL_MS": f"{QUEUE_POLL_INTERVAL_MS} ms",
        "POLL_INTERVAL_MS": f"{POLL_INTERVAL_MS} ms",
        "SHUTDOWN_TIMEOUT_S": f"{SHUTDOWN_TIMEOUT_S} s",
    }


def test_limits_follow_from_the_constants():
    replicas, repositories = (1, 10, 100), 10_000
    assert numbers("connections to PostgreSQL") == [(POOL_SIZE + 1) * each for each in replicas]
    rows_read = repositories * 1000 // QUEUE_POLL_INTERVAL_MS
    assert numbers("rows read per second, by all together, to find what was missed") == [rows_read] * 3
    assert numbers("repositories for each worker") == [repositories // each for each in replicas]


def test_takeover_takes_at_most_fifteen_seconds():
    assert LEASE_TTL_MS + HEARTBEAT_INTERVAL_MS + MIRROR_HEAD_START_MS <= 15_000


def test_eight_replicas_fit_the_connection_limit_of_postgresql():
    assert (POSTGRES_MAX_CONNECTIONS - RESERVED_BY_POSTGRES) // (POOL_SIZE + 1) == 8
    assert "**Eight replicas** fit PostgreSQL's default of 100 connections" in PAGE


def test_page_has_no_todo():
    assert "TODO" not in PAGE
