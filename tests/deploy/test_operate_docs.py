"""The pages about deployment and monitoring have the numbers of the code."""

import re

from mergeyard.adapters.store_postgres.connection import POOL_SIZE
from mergeyard.api.middleware import MAX_REQUESTS
from mergeyard.api.pages import MAX_WEBHOOK_BODIES, WEBHOOK_BODY_TIMEOUT_S
from mergeyard.api.queues import MAX_LONG_POLLS_PER_TOKEN
from mergeyard.api.request_body import MAX_BODY_BYTES, MAX_WEBHOOK_BODY_BYTES
from mergeyard.cli.server import KEEP_ALIVE_S, SHUTDOWN_TIMEOUT_S
from mergeyard.domain.events import MismatchKind
from mergeyard.service.leases import HEARTBEAT_INTERVAL_MS, LEASE_TTL_MS, MIRROR_HEAD_START_MS
from mergeyard.web.live import MAX_STREAMS, MAX_STREAMS_PER_TOKEN
from mergeyard.web.sign_in import MAX_SIGN_IN_FORMS
from mergeyard.web.user_sessions import BODY_TIMEOUT_S
from tests.deploy.files import CADDYFILE, DEPLOY_PAGE, MONITORING_PAGE

PAGE = DEPLOY_PAGE.read_text()
MONITORING = MONITORING_PAGE.read_text()
RESERVED_BY_POSTGRES = 3
POSTGRES_MAX_CONNECTIONS = 100


def row(start: str) -> list[str]:
    (cells,) = re.findall(rf"^\| {start} \|(.*)\|$", PAGE, re.MULTILINE)
    return [cell.strip(" *") for cell in cells.split("|")]


def test_pages_have_the_times_of_the_code():
    assert f"Its leases expire {LEASE_TTL_MS // 1000} seconds after its last heartbeat" in PAGE
    assert f"It finishes the requests in progress within {SHUTDOWN_TIMEOUT_S} seconds" in PAGE
    assert f"heartbeat every {HEARTBEAT_INTERVAL_MS // 1000} seconds" in MONITORING


def test_page_has_the_limits_of_the_server():
    assert row("requests in progress")[0] == f"{MAX_REQUESTS:,}"
    webhooks = f"{MAX_WEBHOOK_BODIES}, each within {WEBHOOK_BODY_TIMEOUT_S:g} s"
    assert row("bodies of webhooks that arrive at the same time")[0] == webhooks
    assert row("a body of a webhook")[0] == f"{MAX_WEBHOOK_BODY_BYTES // 1024**2} MiB"
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
    assert f"A replica uses up to {POOL_SIZE + 1}." in PAGE
    assert f"`{POOL_SIZE + 1} × R + 10`" in PAGE


def test_page_explains_every_mismatch_of_the_audit():
    table = MONITORING.partition("| mismatch | meaning |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == list(MismatchKind)


def test_pages_have_no_todo():
    assert "TODO" not in PAGE + MONITORING
