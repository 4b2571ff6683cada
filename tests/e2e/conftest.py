"""Premises for every test, held to all promises when the test is over."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.premises import Premises
from tests.support.promises import broken_promises


class Build:
    """Builds premises, with the settings of a queue or without a queue."""

    def __init__(self, folder: Path) -> None:
        self.built: list[Premises] = []
        self._folder = folder

    def __call__(self, **settings: Any) -> Premises:
        premises = self.without_queue()
        premises.create_queue(**settings)
        return premises

    def without_queue(self) -> Premises:
        self.built.append(Premises.prepared(self._folder))
        return self.built[-1]


@pytest.fixture
def build(tmp_path: Path) -> Iterator[Build]:
    building = Build(tmp_path)
    yield building
    for premises in building.built:
        try:
            hold_to_promises(premises)
        finally:
            premises.close()
        assert premises.server.complaints() == []


def hold_to_promises(premises: Premises) -> None:
    """In the end all is decided and clean, the target is green, and every promise was kept."""
    premises.ci.working = True
    premises.wait_for_cleanliness()
    premises.evidence.collect()
    assert broken_promises(premises.evidence) == []
    assert premises.ci.verdict(premises.origin.tip("main")) == "success"
