"""Plays stories of clients, as many as one likes, on the store that one likes."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import hypothesis
from hypothesis.stateful import run_state_machine_as_test
from msgspec import Struct

from tests.fuzz.effort import drawing
from tests.fuzz.machine import story
from tests.fuzz.machine.grounds import STORES, grounds

STEPS = 25
"""That a client takes at most."""

__all__ = ["STORES", "Played", "play"]


class Played(Struct):
    clients: int = 0
    requests: int = 0

    def __str__(self) -> str:
        return f"{self.clients} clients with {self.requests:,} requests"


def play(
    store: str,
    clients: int,
    seed: int,
    played: Played,
    tell: Callable[[], object] = lambda: None,
    *,
    steps: int = STEPS,
) -> None:
    with TemporaryDirectory() as folder, grounds(store, Path(folder)) as there:

        class Story(story.Story):
            grounds = there

            def teardown(self) -> None:
                super().teardown()
                played.clients += 1
                played.requests += self.client.asked
                tell()

        hypothesis.seed(seed)(Story)
        run_state_machine_as_test(Story, settings=drawing(clients, steps=steps))
