"""The operations page has the numbers of the code."""

import re

from mergeyard.adapters.store_postgres.connection import POOL_SIZE
from mergeyard.api.middleware import MAX_REQUESTS
from mergeyard.api.pages import MAX_WEBHOOK_BODIES, WEBHOOK_BODY_TIMEOUT_S
from mergeyard.api.queues import MAX_LONG_POLLS_PER_TOKEN
from mergeyard.api.request_body import MAX_BODY_BYTES
from mergeyard.cli.server import KEEP_ALIVE_S, SHUTDOWN_TIMEOUT_S
from mergeyard.service.leases import HEARTBEAT_INTERVAL_MS, LEASE_TTL_MS, MIRROR_HEAD_START_MS
from mergeyard.service.poller import POLL_INTERVAL_MS
from mergeyard.service.replica import QUEUE_POLL_INTERVAL_MS
from mergeyard.web.live import MAX_STREAMS, MAX_STREAMS_PER_TOKEN
from mergeyard.web.sign_in import MAX_SIGN_IN_FORMS
from mergeyard.web.user_sessions import BODY_TIMEOUT_S
from tests.deploy.files import CADDYFILE, OPERATIONS

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


def test_page_has_the_limits_of_the_server():
    assert row("requests in progress")[0] == f"{MAX_REQUESTS:,}"
    webhooks = f"{MAX_WEBHOOK_BODIES}, each within {WEBHOOK_BODY_TIMEOUT_S:g} s"
    assert row("bodies of webhooks that arrive at the same time")[0] == webhooks
    forms = f"{MAX_SIGN_IN_FORMS}, each within {BODY_TIMEOUT_S:g} s"
    assert row("sign-in forms that arrive at the same time")[0] == forms
    assert row("a body of the API")[0] == f"{MAX_BODY_BYTES // 1024**2} MiB, within 60 s"
    assert row("requests of one token that wait for events")[0] == f"{MAX_LONG_POLLS_PER_TOKEN}"
    assert row("open live pages")[0] == f"{MAX_STREAMS_PER_TOKEN} for each token, {MAX_STREAMS} in total"
    assert f"after {KEEP_ALIVE_S} seconds" in PAGE


def test_page_has_the_limits_of_the_shipped_proxy():
    read_header, read_body, idle, header_size, body_size, request_buffer, response_buffer, connections = (
        re.findall(rf"{name} (?:{{\$\w+:)?(\d+)", CADDYFILE)[0]
        for name in (
            *("read_header", "read_body", "idle", "max_header_size", "max_size", "request_buffers"),
            *("response_buffers", "max_conns_per_host"),
        )
    )
    assert row("time to send the headers")[0] == f"{read_header} s"
    assert row("time to send the whole request")[0] == f"{read_body} s"
    assert row("idle connection")[0] == f"{idle} min"
    assert row("size of the headers, with the address")[0] == f"{header_size} KiB"
    assert row("size of a body")[0] == f"{body_size} MiB"
    assert row("buffer for a request, for a response")[0] == f"{request_buffer} KiB, {response_buffer} MiB"
    assert row("connections to each replica")[0] == f"{int(connections):,}, and as many for live pages"


def test_takeover_takes_at_most_fifteen_seconds():
    assert LEASE_TTL_MS + HEARTBEAT_INTERVAL_MS + MIRROR_HEAD_START_MS <= 15_000


def test_eight_replicas_fit_the_connection_limit_of_postgresql():
    assert (POSTGRES_MAX_CONNECTIONS - RESERVED_BY_POSTGRES) // (POOL_SIZE + 1) == 8
    assert "**Eight replicas** fit PostgreSQL's default of 100 connections" in PAGE


def test_page_has_no_todo():
    assert "TODO" not in PAGE
