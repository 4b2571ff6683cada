"""Answers are remembered for as long as nothing of what they say can have changed."""

from pathlib import Path

from mergeyard.adapters.store_sqlite.store import SqliteStore
from mergeyard.api.remembering import FRESH, Remembered
from mergeyard.domain.expected import Expected
from mergeyard.domain.ids import PrNumber, Ticket
from mergeyard.domain.instants import Instant, later
from mergeyard.domain.repositories import QueueKey, Repo
from mergeyard.service.turn import Keeper
from tests.support.builders import a_plain_queue
from tests.support.clock import START, HandClock


def a_keeper(folder: Path) -> Keeper:
    key = QueueKey(Repo("git.local", "acme", "app"), "main")
    return Keeper(key, a_plain_queue(), 1, SqliteStore(folder / "unused.db"), HandClock())


def test_they_are_the_same_for_a_while(tmp_path: Path):
    keeper, remembered = a_keeper(tmp_path), Remembered()
    remembered.answers(keeper, START)[PrNumber(1)] = b"known"
    assert remembered.answers(keeper, later(START, FRESH - 1)) == {PrNumber(1): b"known"}
    assert remembered.answers(keeper, later(START, FRESH)) == {}


def test_none_outlives_the_queue_it_was_about(tmp_path: Path):
    keeper, remembered = a_keeper(tmp_path), Remembered()
    remembered.answers(keeper, START)[PrNumber(1)] = b"known"
    keeper.queue = a_plain_queue()
    assert remembered.answers(keeper, START) == {}


def test_none_outlives_the_forecast_it_was_taken_from(tmp_path: Path):
    keeper, remembered = a_keeper(tmp_path), Remembered()
    remembered.answers(keeper, START)[PrNumber(1)] = b"known"
    keeper.forecast = {Ticket(1): Expected(Instant(1), Instant(2))}
    assert remembered.answers(keeper, START) == {}
