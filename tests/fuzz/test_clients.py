"""Clients do anything in any order, and the service keeps its word to each of them; on every store."""

import pytest

from tests.fuzz.machine.playing import STORES, Played, play


@pytest.mark.parametrize("store", STORES)
def test_whatever_clients_do_the_service_keeps_its_word(store: str):
    played = Played()
    play(store, clients=2, seed=1, played=played, steps=10)
    assert played.clients == 2


@pytest.mark.long
@pytest.mark.parametrize("store", STORES)
def test_whatever_many_clients_do_the_service_keeps_its_word(store: str):
    play(store, clients=25, seed=2, played=Played())
