"""An order is obeyed once, and never taken for another."""

from pathlib import Path

from mergeyard.adapters.store_sqlite.store import SqliteStore
from mergeyard.domain.repositories import QueueKey, Repo
from mergeyard.service.talking.obeying import Order
from mergeyard.service.turn import Keeper
from tests.support.builders import a_plain_queue, a_pull
from tests.support.clock import HandClock

DEEP = QueueKey(Repo("gitlab.local", "/".join(["group"] * 50), "app"), "main")


def test_two_words_are_told_apart_however_long_the_name_of_the_repository_is(tmp_path: Path):
    keeper = Keeper(DEEP, a_plain_queue(), 0, SqliteStore(tmp_path / "yard.db"), HandClock())
    errands = [Order(keeper=keeper, pull=a_pull(1), person="ada", word=word).errand() for word in ("101", "102")]
    keys = [errand.repeat.key for errand in errands if errand.repeat]
    assert len(set(keys)) == 2
    assert all(len(key) <= 255 for key in keys)
