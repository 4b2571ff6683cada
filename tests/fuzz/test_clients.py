"""Random sequences of client requests get the responses that the model expects, on every store."""

import pytest

from tests.fuzz.machine.environment import STORES
from tests.fuzz.machine.state_machine import RunCounts, run_clients
from tests.support.long_tests import mark_long_after


@pytest.mark.long
@pytest.mark.parametrize("store", mark_long_after(1, list(STORES)))
def test_random_client_requests_match_the_model(store: str):
    counts = RunCounts()
    run_clients(store, clients=2, seed=1, counts=counts, steps=10)
    assert counts.clients == 2


@pytest.mark.long
@pytest.mark.parametrize("store", STORES)
def test_many_random_client_requests_match_the_model(store: str):
    run_clients(store, clients=25, seed=2, counts=RunCounts())
