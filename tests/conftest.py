"""Whoever takes longest begins first, so that nobody waits for a last one; and what did not run is told."""

import gc
import logging
import sys
from collections.abc import Generator, Iterator

import pytest
import structlog
from structlog.dev import ConsoleRenderer, plain_traceback

from mergeyard.logs import SERVER_LOGGERS

sys.modules.setdefault("sniffio", None)  # pyright: ignore[reportArgumentType]
"""Not to be had. httpx would import it with every request, and search all folders for it every time."""

structlog.configure(
    processors=[*structlog.get_config()["processors"][:-1], ConsoleRenderer(exception_formatter=plain_traceback)]
)
"""A logged error would otherwise be drawn in colour, with the values of all variables: dearer than most tests."""


@pytest.fixture
def logging_as_before() -> Iterator[None]:
    """For whoever configures it: later tests listen to what is logged."""
    loggers = [logging.getLogger(name) for name in (None, *SERVER_LOGGERS)]
    before = [(logger, logger.handlers, logger.level, logger.propagate) for logger in loggers]
    configured = structlog.get_config()
    yield
    for logger, handlers, level, propagate in before:
        logger.handlers, logger.propagate = handlers, propagate
        logger.setLevel(level)
    structlog.configure(**configured)


SLOW = (
    *("tests/replicas/", "tests/e2e/", "tests/kills/", "tests/surroundings/"),
    *("tests/hostile/", "tests/campaign/", "tests/browser/"),
    *("tests/simulation/", "tests/bench/", "tests/model/"),
    *("tests/contract/archive/", "tests/scenario/"),
)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected stays until the end: nobody need search it for garbage, neither now nor later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(
        key=lambda item: next((at for at, folder in enumerate(SLOW) if item.nodeid.startswith(folder)), len(SLOW))
    )


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What was skipped, and why, in one sentence for all that share it."""
    skipped: list[pytest.TestReport] = terminalreporter.stats.get("skipped", [])
    for words in sorted({str(report.longrepr[2]) for report in skipped if isinstance(report.longrepr, tuple)}):
        terminalreporter.write_line(words.removeprefix("Skipped: "), yellow=True)
