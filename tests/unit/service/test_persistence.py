"""Encoding and decoding of queues: after every decision in random worlds, the stored queue equals the queue."""

import random
from collections.abc import Sequence

import pytest

from mergeyard.domain.events import Event, ImpactedTargetsUploaded, PullRequestDirty
from mergeyard.domain.ids import PullRequestNumber
from mergeyard.domain.pull_requests import impacted_targets_from_names
from mergeyard.domain.queue import Decision, Queue
from mergeyard.domain.states import CheckState
from mergeyard.ports.writes import SaveDecision
from mergeyard.service import persistence
from mergeyard.service.impacted_targets import EncodedTargets, encode_targets
from tests.model.world import RandomWorld
from tests.support.builders import QueueWorld, a_parallel_world, a_world
from tests.support.long_tests import mark_long_after
from tests.support.queue_part_store import NOW, QueuePartStore, stored_values


def write_of(world: QueueWorld, *events: Event) -> SaveDecision:
    before = world.queue
    decision = world.apply(*events)
    return persistence.encode_changes(
        before, decision.queue, 2, decision.concluded_submissions, decision.finished_runs, NOW
    )


@pytest.mark.parametrize("seed", mark_long_after(8, range(60)))
def test_loading_what_was_stored_after_each_decision_gives_the_queue(seed: int):
    random = RandomWorld(seed)
    storage = QueuePartStore(random.world.queue)

    def compare(before: Queue, events: Sequence[Event], decision: Decision) -> None:
        if decision.queue is not before:
            storage.on_decision(before, events, decision)
            assert stored_values(storage.load()) == stored_values(decision.queue)

    random.world.listeners.append(compare)
    random.run()


def test_a_decision_writes_only_the_submission_and_run_that_changed():
    world = a_world(prs=5)
    write = write_of(world, world.observe_result(CheckState.PASSED, 3))
    assert [submission.submission_id for submission in write.submissions] == [world.submission_id(3)]
    assert [run.id for run in write.runs] == [world.run_of(3).id]


def test_impacted_targets_are_written_only_when_they_change():
    world = a_parallel_world("x", "y")
    assert targets_written(write_of(world, world.observe_result(CheckState.PASSED, 1))) == []
    event = ImpactedTargetsUploaded(
        number=PullRequestNumber(2), head=world.head(2), impacted_targets=impacted_targets_from_names("z")
    )
    assert targets_written(write_of(world, event)) == [str(world.submission_id(2))]


def test_impacted_targets_that_are_already_encoded_are_not_encoded_again():
    world = a_parallel_world("x", "y")
    same, equal = impacted_targets_from_names("z"), impacted_targets_from_names("z")
    uploaded = EncodedTargets(b"as it was sent", same)
    for targets, body in ((same, uploaded.body), (equal, encode_targets(equal))):
        before = world.queue
        decision = world.apply(
            ImpactedTargetsUploaded(number=PullRequestNumber(2), head=world.head(2), impacted_targets=targets)
        )
        write = persistence.encode_changes(
            before, decision.queue, 2, decision.concluded_submissions, decision.finished_runs, NOW, [uploaded]
        )
        assert [part.body for part in write.parts if part.kind == "impacted_targets"] == [body]
        world.apply(
            ImpactedTargetsUploaded(
                number=PullRequestNumber(2), head=world.head(2), impacted_targets=impacted_targets_from_names("y")
            )
        )


def targets_written(write: SaveDecision) -> list[str]:
    return [part.key for part in write.parts if part.kind == "impacted_targets"]


@pytest.mark.parametrize("seed", mark_long_after(8, range(60)))
def test_a_copy_that_applies_changes_now_and_then_equals_the_queue(seed: int):
    world, chance = RandomWorld(seed), random.Random(seed)
    storage = QueuePartStore(world.world.queue)
    copy, version = storage.load(), storage.version

    def follow(before: Queue, events: Sequence[Event], decision: Decision) -> None:
        nonlocal copy, version
        if decision.queue is not before:
            storage.on_decision(before, events, decision)
        if chance.random() < 0.3:
            copy, version = persistence.apply_changes(copy, storage.changes(version)), storage.version
            assert stored_values(copy) == stored_values(storage.load())

    world.world.listeners.append(follow)
    world.run()
    assert stored_values(persistence.apply_changes(copy, storage.changes(version))) == stored_values(world.world.queue)


def test_unchanged_submissions_stay_the_same_objects():
    world = a_world(prs=5)
    storage = QueuePartStore(world.queue)
    copy = storage.load()
    before = world.queue
    storage.on_decision(before, (), world.apply(world.observe_result(CheckState.PASSED, 3)))
    caught_up = persistence.apply_changes(copy, storage.changes(1))
    unchanged = [
        submission.number
        for submission in caught_up.submissions.values()
        if copy.submissions[submission.id] is submission
    ]
    assert unchanged == [1, 2, 4, 5]
    assert stored_values(caught_up) == stored_values(world.queue)


def test_requested_refreshes_survive_applying_changes():
    world = a_world(prs=2)
    storage = QueuePartStore(world.queue)
    world.apply(PullRequestDirty(number=PullRequestNumber(2)))
    assert [*persistence.apply_changes(world.queue, storage.changes(0)).refresh_requested] == [world.submission_id(2)]


def test_a_submission_from_another_replica_is_refreshed():
    world = a_world(prs=2)
    storage = QueuePartStore(world.queue)
    copy, before = storage.load(), world.queue
    storage.on_decision(before, (), world.submit(3))
    assert [*persistence.apply_changes(copy, storage.changes(1)).refresh_requested] == [world.submission_id(3)]


def test_after_loading_all_submissions_are_refreshed():
    world = a_world(prs=2)
    assert [*persistence.decode_queue_and_refresh_all(QueuePartStore(world.queue).load_parts()).refresh_requested] == [
        world.submission_id(1),
        world.submission_id(2),
    ]
