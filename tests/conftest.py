"""Whoever takes longest begins first, so that nobody waits for a last one; and what did not run is told."""

import sys

import pytest

sys.modules.setdefault("sniffio", None)  # pyright: ignore[reportArgumentType]
"""With every request httpx looks for it, anew and in every folder, where it is not installed: it is told at once."""

SLOW = (
    *("tests/replicas/", "tests/e2e/", "tests/kills/", "tests/surroundings/"),
    *("tests/hostile/", "tests/campaign/", "tests/browser/"),
    *("tests/simulation/", "tests/bench/", "tests/model/"),
    *("tests/contract/archive/", "tests/scenario/"),
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: next((at for at, folder in enumerate(SLOW) if folder in item.nodeid), len(SLOW)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What was skipped, and why, in one sentence for all that share it."""
    skipped: list[pytest.TestReport] = terminalreporter.stats.get("skipped", [])
    for words in sorted({str(report.longrepr[2]) for report in skipped if isinstance(report.longrepr, tuple)}):
        terminalreporter.write_line(words.removeprefix("Skipped: "), yellow=True)
