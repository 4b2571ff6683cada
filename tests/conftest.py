"""Whoever takes longest begins first, so that nobody waits for a last one in the end."""

import pytest

SLOW = ("tests/replicas/", "tests/e2e/", "tests/bench/", "tests/model/", "tests/contract/archive/", "tests/scenario/")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: next((at for at, folder in enumerate(SLOW) if folder in item.nodeid), len(SLOW)))
