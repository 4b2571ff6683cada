"""Disables logging: these tests provoke many errors, and each one would print a traceback.

A test of all merge methods runs with one of them in `make test`, and with the others in `make test-long`. The methods
take turns, so that every one has quick tests.
"""

from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from zlib import crc32

import pytest

from mergeyard.domain.config import MergeMethod
from tests.support.log_capture import without_logs

FOLDER = "tests/scenario/"
ALWAYS_WITH_EVERY_METHOD = ("test_the_commit_that_was_tested_is_the_commit_that_lands",)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    variants = defaultdict[tuple[Path, str], list[pytest.Function]](list)
    for item in items:
        if isinstance(item, pytest.Function) and item.nodeid.startswith(FOLDER) and _method_of(item):
            variants[item.path, item.originalname].append(item)
    for (_, name), functions in variants.items():
        methods = sorted({_method_of(function) for function in functions})
        quick = methods if name in ALWAYS_WITH_EVERY_METHOD else [methods[crc32(name.encode()) % len(methods)]]
        for function in functions:
            if _method_of(function) not in quick:
                function.add_marker(pytest.mark.long)


def _method_of(item: pytest.Function) -> str:
    method = item.callspec.params.get("method") if hasattr(item, "callspec") else None
    return method if isinstance(method, MergeMethod) else ""


@pytest.fixture(autouse=True)
def no_log() -> Generator[None]:
    with without_logs():
        yield
