"""Responses are cached as long as nothing in them can have changed."""

from pathlib import Path

from mergeyard.adapters.store_sqlite.store import SqliteStore
from mergeyard.api.pull_requests import MAX_AGE_MS, ResponseCache
from mergeyard.domain.ids import PullRequestNumber, QueueKey, Repo, SubmissionId
from mergeyard.domain.timestamps import Instant, MergeEstimate, later
from mergeyard.service.queue_actor import QueueActor
from tests.support.builders import a_plain_queue
from tests.support.clock import START_TIME, ManualClock


def an_actor(folder: Path) -> QueueActor:
    key = QueueKey(Repo("git.local", "acme", "app"), "main")
    return QueueActor(key, a_plain_queue(), 1, SqliteStore(folder / "unused.db"), ManualClock())


def test_responses_are_cached_for_a_while(tmp_path: Path):
    actor, cache = an_actor(tmp_path), ResponseCache()
    cache.get_responses(actor, START_TIME)[PullRequestNumber(1)] = b"known"
    assert cache.get_responses(actor, later(START_TIME, MAX_AGE_MS - 1)) == {PullRequestNumber(1): b"known"}
    assert cache.get_responses(actor, later(START_TIME, MAX_AGE_MS)) == {}


def test_no_cached_response_outlives_its_queue(tmp_path: Path):
    actor, cache = an_actor(tmp_path), ResponseCache()
    cache.get_responses(actor, START_TIME)[PullRequestNumber(1)] = b"known"
    actor.queue = a_plain_queue()
    assert cache.get_responses(actor, START_TIME) == {}


def test_no_cached_response_outlives_its_forecast(tmp_path: Path):
    actor, cache = an_actor(tmp_path), ResponseCache()
    cache.get_responses(actor, START_TIME)[PullRequestNumber(1)] = b"known"
    actor.forecast = {SubmissionId(1): MergeEstimate(Instant(1), Instant(2))}
    assert cache.get_responses(actor, START_TIME) == {}
