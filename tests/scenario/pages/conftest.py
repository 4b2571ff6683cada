"""Pages are drawn at once: no test that moves the clock by hand waits for templates."""

import pytest

from mergeyard.web.preparing import compile_all


@pytest.fixture(scope="session", autouse=True)
def templates_are_compiled() -> None:
    compile_all()
