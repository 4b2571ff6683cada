"""Starts slow tests first, so that no worker waits for a last one, and reports what was not tested."""

import gc
import logging
import os
import sys
import time
from collections import Counter
from collections.abc import Generator, Iterator
from itertools import islice
from pathlib import Path

import pytest
import structlog
from structlog.dev import ConsoleRenderer, plain_traceback

from mergeyard.logging import SERVER_LOGGERS
from tests.support.temporary_files import use_memory

use_memory()

if "MERGEYARD_TEST_FORGE_URL" not in os.environ:
    # Reading all public certificates takes longer than most tests, and no other test talks to a public server.
    os.environ["SSL_CERT_FILE"] = str(Path(__file__).parent / "support" / "no_public_authority.pem")

sys.modules.setdefault("sniffio", None)  # pyright: ignore[reportArgumentType]
"""It is not installed. httpcore2 would try to import it with every request, which searches all folders every time."""

structlog.configure(
    processors=[*structlog.get_config()["processors"][:-1], ConsoleRenderer(exception_formatter=plain_traceback)]
)
"""A logged error would otherwise be rendered with all variables, which takes longer than most tests."""


@pytest.fixture
def logging_as_before() -> Iterator[None]:
    """Restores the logging configuration, because later tests read what is logged."""
    loggers = [logging.getLogger(name) for name in (None, *SERVER_LOGGERS)]
    before = [(logger, logger.handlers, logger.level, logger.propagate) for logger in loggers]
    configured = structlog.get_config()
    yield
    for logger, handlers, level, propagate in before:
        logger.handlers, logger.propagate = handlers, propagate
        logger.setLevel(level)
    structlog.configure(**configured)


WAITING = ("tests/browser/", "tests/replicas/", "tests/hostile/", "tests/e2e/", "tests/kills/", "tests/faults/")
"""Their tests wait for servers and leases most of the time."""
SLOW = (
    *("tests/campaign/", "tests/simulation/", "tests/bench/", "tests/model/"),
    *("tests/contract/archive/", "tests/scenario/"),
)
BUSY_TESTS_PER_WAITING_TEST = 4


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collected items live until the end, so garbage collection never has to examine them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Tests that share a server or a browser run in one worker: each worker would otherwise start its own."""
    if isinstance(item, pytest.Function) and (shared := _shared_fixtures(item)):
        item.add_marker(pytest.mark.xdist_group(min(shared, key=len)))


def _shared_fixtures(item: pytest.Function) -> list[str]:
    """The modules and packages whose shared fixtures a test uses."""
    definitions = item._fixtureinfo.name2fixturedefs.values()  # pyright: ignore[reportPrivateUsage]
    return [used[-1].baseid for used in definitions if used[-1].scope in ("module", "package")]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Removes the group, which workers append to the name of a test: `--last-failed` would not find the test."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        report.nodeid = report.nodeid.partition("@tests/")[0]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Slow tests come first. Where tests that share a server stay together, others come between those that wait."""
    folders = (*WAITING, *SLOW)
    items.sort(
        key=lambda item: next((at for at, folder in enumerate(folders) if item.nodeid.startswith(folder)), len(folders))
    )
    if not config.getoption("loadgroup", False):
        return
    waiting = [item for item in items if item.nodeid.startswith(WAITING)]
    busy = iter([item for item in items if not item.nodeid.startswith(WAITING)])
    mixed = [item for each in waiting for item in (each, *islice(busy, BUSY_TESTS_PER_WAITING_TEST))]
    items[:] = [*mixed, *busy]


STARTED_AT = time.monotonic()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:  # noqa: ARG001
    """`make ci` has a limited time: on a slow machine the last long tests are skipped, and the summary reports them."""
    minutes = os.environ.get("MERGEYARD_TEST_MINUTES")
    if minutes and time.monotonic() > STARTED_AT + 60 * float(minutes):
        pytest.skip(f"the {minutes} minutes for these tests are over")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says what was not tested, and how to test it."""
    skipped: list[pytest.TestReport] = terminalreporter.stats.get("skipped", [])
    reasons = Counter(str(report.longrepr[2]) for report in skipped if isinstance(report.longrepr, tuple))
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_line(f"Skipped {count}: {reason.removeprefix('Skipped: ')}", yellow=True)
    if terminalreporter.config.getoption("markexpr") == "not long":
        terminalreporter.write_line("Not run: the long tests. `make test-long` runs them.", yellow=True)
