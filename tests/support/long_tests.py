"""Marks all but the first test cases as long; they run only in `make test-long`."""

from collections.abc import Sequence
from typing import Any

import pytest


def mark_long_after(count: int, cases: Sequence[object]) -> list[Any]:
    long_cases = (pytest.param(case, marks=pytest.mark.long) for case in cases[count:])
    return [*cases[:count], *long_cases]
