"""Starts a server with a repository for a test, and verifies all promises when the test is over."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.environment import ServerEnvironment
from tests.support.promises import broken_promises
from tests.support.violations import assert_kept


class StartEnvironment:
    """Starts an environment with a queue of the given settings, or without a queue."""

    def __init__(self, folder: Path) -> None:
        self.started: list[ServerEnvironment] = []
        self._folder = folder

    def __call__(self, **settings: Any) -> ServerEnvironment:
        env = self.without_queue()
        env.create_queue(**settings)
        return env

    def without_queue(self) -> ServerEnvironment:
        self.started.append(ServerEnvironment.start(self._folder))
        return self.started[-1]


@pytest.fixture
def start_env(tmp_path: Path) -> Iterator[StartEnvironment]:
    start = StartEnvironment(tmp_path)
    yield start
    for env in start.started:
        try:
            assert_promises_kept(env)
        finally:
            env.close()
        assert env.server.logged_errors() == []


def assert_promises_kept(env: ServerEnvironment) -> None:
    """In the end everything is decided and cleaned up, the target branch passes, and every promise was kept."""
    env.ci.enabled = True
    env.wait_until_clean()
    env.evidence.collect()
    assert_kept(broken_promises(env.evidence))
    assert env.ci.evaluate(env.origin.tip("main")) == "success"
