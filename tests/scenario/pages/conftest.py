"""Compiles the templates once per session, so that no test that moves the clock waits for the compilation."""

import pytest

from mergeyard.web.app import compile_templates


@pytest.fixture(scope="session", autouse=True)
def templates_are_compiled() -> None:
    compile_templates()
