"""Cases of which some are enough for every day; all others wait for `make test-long`."""

from collections.abc import Sequence
from typing import Any

import pytest


def only_first(count: int, cases: Sequence[object]) -> list[Any]:
    seldom = (pytest.param(case, marks=pytest.mark.long) for case in cases[count:])
    return [*cases[:count], *seldom]
