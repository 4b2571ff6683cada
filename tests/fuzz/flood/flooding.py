"""Sends requests in rounds, some to each endpoint, and judges every answer; a bad one is told as small as it can be."""

from collections.abc import Callable
from time import monotonic
from typing import Any

import hypothesis
from hypothesis import given
from schemathesis import Case, GenerationMode

from tests.contract.api.random_requests import operations
from tests.fuzz.effort import drawing
from tests.fuzz.flood.guises import GUISES, Sender
from tests.fuzz.flood.target import Target
from tests.fuzz.flood.toll import Toll

AT_ONCE = 25
"""Requests to one endpoint, before it is the next one's turn."""
GROWTH = 200
"""MiB that a server may grow by, from when it has seen everything once."""


def flood(target: Target, requests: int, seed: int, tell: Callable[[Toll], object] = lambda _: None) -> Toll:
    """In whole rounds, so that no endpoint is left out."""
    toll, begun = Toll(), monotonic()
    while toll.requests < requests:
        target.begin_round()
        for operation in operations():
            for mode in GenerationMode:
                target.set_to_work()
                send_some(target, operation.as_strategy(generation_mode=mode), toll, seed)
                toll.seconds = monotonic() - begun
                tell(toll)
        seed += 1
        toll.memory.append(target.memory())
    target.check()
    assert toll.memory[-1] < toll.memory[0] + GROWTH, f"it grows: {toll.memory[0]:.0f} → {toll.memory[-1]:.0f} MiB"
    return toll


def send_some(target: Target, cases: Any, toll: Toll, seed: int) -> None:
    @drawing(AT_ONCE)
    @hypothesis.seed(seed)
    @given(cases)
    def sends(case: Case[Any]) -> None:
        for send in GUISES:
            send(Sender(target, case, toll))

    sends()
