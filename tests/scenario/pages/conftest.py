"""Compiles the templates once per session, so that no test that moves the clock waits for the compilation."""

import pytest

from mergeyard.web.rendering import TEMPLATE_ENVIRONMENT


@pytest.fixture(scope="session", autouse=True)
def templates_are_compiled() -> None:
    for name in TEMPLATE_ENVIRONMENT.list_templates():
        TEMPLATE_ENVIRONMENT.get_template(name)
