"""Serializes a queue into stored parts, only those that a decision changed, and loads it again.

Domain values never change in place, so a part that is the same object as before is unchanged. Two things are not
stored: in which list of the queue a pull request is, because that follows from the other parts; and which pull
requests must be read again, because after a start all of them are.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import MsgspecError, Struct, json
from msgspec.structs import replace

from mergeyard.domain.ids import BatchId, PullRequestNumber, QueueId, RunId, Sha, SubmissionId
from mergeyard.domain.journal import QueueChanged, QueueEntry
from mergeyard.domain.pull_requests import ImpactedTargets, Submission
from mergeyard.domain.queue import Batch, Bisection, Landing, PassRateModel, Queue, TargetBranch
from mergeyard.domain.runs import Run
from mergeyard.domain.sorted_map import SortedMap
from mergeyard.domain.states import PullRequestState, QueueState
from mergeyard.domain.timestamps import Instant
from mergeyard.engine import lanes
from mergeyard.ports.store import ChangedRow, LoadedQueue, QueueChanges, Store, StoreUnavailable
from mergeyard.ports.writes import QueuePart, RunRow, SaveDecision, SubmissionRow
from mergeyard.service.impacted_targets import EncodedTargets, decode_targets_in_thread, encode_targets

encode = msgspec.json.Encoder().encode
EMPTY_QUEUE = Queue(id=QueueId(""), target_branch=TargetBranch(name=""))
LISTS = ("submissions", "submission_by_number", "not_ready", "waiting", "held", "refresh_requested")
"""The fields that are built from the stored submissions, or not stored at all."""
EMPTY_PARTS = {
    name: getattr(EMPTY_QUEUE, name) for name in ("landing", "pass_rate_model", "active", "bisections", "runs", *LISTS)
}


class PartOrder(Struct, frozen=True):
    """The order of the parts that are stored one by one."""

    batches: tuple[BatchId, ...] = ()
    bisections: tuple[BatchId, ...] = ()
    runs: tuple[RunId, ...] = ()


PART_TYPES: Mapping[str, Any] = {
    "queue": Queue,
    "order": PartOrder,
    "target_branch": TargetBranch,
    "landing": Landing,
    "pass_rate_model": PassRateModel,
    "batch": Batch,
    "bisection": Bisection,
    "impacted_targets": ImpactedTargets,
}
"""The type of each kind of part. The part "queue" holds only what no other part holds."""

part_decoders = {kind: msgspec.json.Decoder(part_type) for kind, part_type in PART_TYPES.items()}
decode_submission = msgspec.json.Decoder(Submission).decode
decode_run = msgspec.json.Decoder(Run).decode
decode_record = msgspec.json.Decoder[QueueEntry](QueueEntry).decode


def encode_changes(
    before: Queue,
    after: Queue,
    version: int,
    concluded: Iterable[Submission],
    finished: Iterable[Run],
    now: Instant,
    encoded_targets: Sequence[EncodedTargets] = (),
) -> SaveDecision:
    """The writes that turn the stored `before` into `after`. Impacted targets that a client just uploaded come in
    `encoded_targets`, so that a long list is not encoded twice."""
    old = before.submissions.entries_not_shared_with(after.submissions)
    new = after.submissions.entries_not_shared_with(before.submissions)
    changed = {key: submission for key, submission in new.items() if old.get(key) is not submission}
    removed = old.keys() - new.keys()
    return SaveDecision(
        queue=after.id,
        version=version,
        parts=(*_changed_parts(before, after), *_changed_targets(old, new, (*changed, *removed), encoded_targets)),
        submissions=(
            *(to_submission_row(submission) for submission in changed.values()),
            *(to_submission_row(submission, now) for submission in concluded),
        ),
        runs=(
            *(to_run_row(run) for run in after.runs.values() if before.runs.get(run.id) is not run),
            *(to_run_row(run, now) for run in finished),
        ),
    )


def to_submission_row(submission: Submission, ended_at: Instant | None = None) -> SubmissionRow:
    return SubmissionRow(
        submission_id=submission.id,
        number=submission.number,
        branch=submission.pull_request.head_branch,
        state=submission.state,
        submitted_at=submission.submitted_at,
        ended_at=ended_at,
        live=ended_at is None,
        body=encode(replace(submission, impacted_targets=None)),
    )


def to_run_row(run: Run, ended_at: Instant | None = None) -> RunRow:
    return RunRow(
        id=run.id,
        status=run.status,
        tested_count=run.tested_count,
        tip=run.tip if run.started_at is not None and run.chain else None,
        started_at=run.started_at,
        decided_at=run.decided_at,
        ended_at=ended_at,
        live=ended_at is None,
        body=encode(run),
    )


def _changed_parts(before: Queue, after: Queue) -> Iterator[QueuePart]:
    old = dict(_parts(before))
    for kind_and_key, part in _parts(after):
        if old.pop(kind_and_key, None) is not part:
            yield QueuePart(*kind_and_key, encode(part))
    yield QueuePart("queue", "", encode(strip_parts(after)))
    if (order := part_order(after)) != part_order(before):
        yield QueuePart("order", "", encode(order))
    for kind, key in old:
        yield QueuePart(kind, key, None)


def _parts(queue: Queue) -> Iterator[tuple[tuple[str, str], Any]]:
    yield ("target_branch", ""), queue.target_branch
    if queue.landing is not None:
        yield ("landing", ""), queue.landing
    yield ("pass_rate_model", ""), queue.pass_rate_model
    for batch in queue.active.batches:
        yield ("batch", str(batch.id)), batch
    for bisection in queue.bisections:
        yield ("bisection", str(bisection.id)), bisection


def part_order(queue: Queue) -> PartOrder:
    return PartOrder(
        batches=tuple(batch.id for batch in queue.active.batches),
        bisections=tuple(bisection.id for bisection in queue.bisections),
        runs=tuple(queue.runs),
    )


def strip_parts(queue: Queue) -> Queue:
    """The queue without everything that is stored as other parts or rows, or not at all."""
    return replace(queue, target_branch=TargetBranch(name=queue.target_branch.name), **EMPTY_PARTS)


def _changed_targets(
    old: Mapping[SubmissionId, Submission],
    new: Mapping[SubmissionId, Submission],
    submission_ids: Iterable[SubmissionId],
    encoded_targets: Sequence[EncodedTargets],
) -> Iterator[QueuePart]:
    """Impacted targets can be a long list and rarely change, so they are stored apart from their submission."""
    encoded = {id(each.impacted_targets): each.body for each in encoded_targets}
    for submission_id in submission_ids:
        before, after = (
            submissions[submission_id].impacted_targets if submission_id in submissions else None
            for submissions in (old, new)
        )
        if after is not before:
            body = None if after is None else encoded.get(id(after)) or encode_targets(after)
            yield QueuePart("impacted_targets", str(submission_id), body)


ChangedParts = dict[str, Any]
"""The changed parts of one kind by key; None for a part that was deleted."""


def decode_queue(loaded: LoadedQueue) -> Queue:
    return _decode_changes(
        EMPTY_QUEUE,
        QueueChanges(
            version=loaded.version,
            parts=loaded.parts,
            submissions=tuple(ChangedRow(True, body) for body in loaded.submissions),
            runs=tuple(ChangedRow(True, body) for body in loaded.runs),
        ),
    )


def apply_changes(queue: Queue, changes: QueueChanges) -> Queue:
    """Costs time in proportion to what changed. The refresh requests of this replica stay, as they are not stored.
    Submissions that came through another replica are refreshed: a change of their pull requests that was reported here
    before this replica knew them had no effect."""
    after = _decode_changes(queue, changes)
    return _request_refresh(
        after, map(SubmissionId, range(queue.counters.submissions + 1, after.counters.submissions + 1))
    )


def decode_queue_and_refresh_all(loaded: LoadedQueue) -> Queue:
    """For a replica that is too far behind to catch up. Its refresh requests are lost, so every pull request is
    refreshed."""
    queue = decode_queue(loaded)
    return _request_refresh(queue, queue.submissions)


def _request_refresh(queue: Queue, submission_ids: Iterable[SubmissionId]) -> Queue:
    for submission_id in submission_ids:
        if submission_id in queue.submissions:
            queue = replace(
                queue, refresh_requested=queue.refresh_requested.put(submission_id, queue.counters.revision)
            )
    return queue


def _decode_changes(queue: Queue, changes: QueueChanges) -> Queue:
    try:
        return _apply(queue, changes)
    except (MsgspecError, LookupError) as error:
        message = f"The stored data of a queue cannot be decoded ({error!r})"
        raise StoreUnavailable(
            f"{message}. Stop Mergeyard, keep a copy of the database and restore a backup."
        ) from error


def _apply(queue: Queue, changes: QueueChanges) -> Queue:
    parts = _decode_parts(changes.parts)
    after = _apply_parts(queue, parts, changes.runs)
    changed = {
        submission.id: submission if live else None
        for submission, live in _decode_submissions(queue, parts["impacted_targets"], changes)
    }
    placed = set(after.submission_ids_under_test)
    for submission_id in sorted(placed.symmetric_difference(queue.submission_ids_under_test) | changed.keys()):
        known = queue.submissions.get(submission_id)
        if known is not None:
            after = _remove_submission(after, known)
        submission = changed.get(submission_id, known)
        if submission is None:
            after = replace(after, refresh_requested=after.refresh_requested.drop(submission_id))
        else:
            after = _insert_submission(after, submission, is_placed=submission_id in placed)
    return after


def _apply_parts(queue: Queue, parts: Mapping[str, ChangedParts], runs: Iterable[ChangedRow]) -> Queue:
    order: PartOrder = parts["order"].get("") or part_order(queue)
    batches = {str(batch.id): batch for batch in queue.active.batches} | parts["batch"]
    bisections = {str(bisection.id): bisection for bisection in queue.bisections} | parts["bisection"]
    known = {**queue.runs, **{run.id: run for run in map(decode_run, (row.body for row in runs if row.live))}}
    return replace(
        parts["queue"].get("") or strip_parts(queue),
        target_branch=parts["target_branch"].get("", queue.target_branch),
        landing=parts["landing"].get("", queue.landing),
        pass_rate_model=parts["pass_rate_model"].get("", queue.pass_rate_model),
        active=lanes.build_active(batches[str(batch)] for batch in order.batches),
        bisections=tuple(bisections[str(bisection)] for bisection in order.bisections),
        runs={run: known[run] for run in order.runs},
        **{name: getattr(queue, name) for name in LISTS},
    )


def _decode_parts(stored: Iterable[QueuePart]) -> dict[str, ChangedParts]:
    parts: dict[str, ChangedParts] = {kind: {} for kind in PART_TYPES}
    for part in stored:
        parts[part.kind][part.key] = None if part.body is None else part_decoders[part.kind].decode(part.body)
    return parts


def _decode_submissions(
    queue: Queue, impacted_targets: ChangedParts, changes: QueueChanges
) -> Iterator[tuple[Submission, bool]]:
    """Joins each submission with its impacted targets, which are a part of their own."""
    for changed in changes.submissions:
        submission = decode_submission(changed.body)
        known = queue.submissions.get(submission.id)
        targets = impacted_targets.get(str(submission.id), known and known.impacted_targets)
        yield replace(submission, impacted_targets=targets), changed.live


def _remove_submission(queue: Queue, submission: Submission) -> Queue:
    """Removes it from the submissions and from every list that can hold it."""
    waiting = dict(queue.waiting)
    bucket = waiting.pop(submission.waiting_priority, SortedMap[SubmissionId, None]()).drop(submission.id)
    return replace(
        queue,
        submissions=queue.submissions.drop(submission.id),
        submission_by_number=queue.submission_by_number.drop(submission.number),
        not_ready=queue.not_ready.drop((submission.not_ready_at_running_ms, submission.id)),
        waiting=waiting | {submission.waiting_priority: bucket} if bucket else waiting,
        held=queue.held.drop(submission.id),
    )


def _insert_submission(queue: Queue, submission: Submission, *, is_placed: bool) -> Queue:
    """`is_placed`: a batch or a bisection holds it, so no list does."""
    queue = replace(
        queue,
        submissions=queue.submissions.put(submission.id, submission),
        submission_by_number=queue.submission_by_number.put(submission.number, submission.id),
    )
    if submission.state is PullRequestState.NOT_READY:
        return replace(queue, not_ready=queue.not_ready.put((submission.not_ready_at_running_ms, submission.id), None))
    if submission.hold is not None:
        return replace(queue, held=queue.held.put(submission.id, None))
    if is_placed:
        return queue
    bucket = queue.waiting.get(submission.waiting_priority, SortedMap[SubmissionId, None]())
    return replace(queue, waiting={**queue.waiting, submission.waiting_priority: bucket.put(submission.id, None)})


async def read_submission(store: Store, queue: QueueId, submission_id: SubmissionId) -> Submission | None:
    body = await store.submission(queue, submission_id)
    return None if body is None else decode_submission(body)


async def read_last_submission(store: Store, queue: QueueId, number: PullRequestNumber) -> Submission | None:
    body = await store.last_submission(queue, number)
    return None if body is None else decode_submission(body)


async def read_run(store: Store, queue: QueueId, run_id: RunId) -> Run | None:
    body = await store.run(queue, run_id)
    return None if body is None else decode_run(body)


async def read_impacted_targets(
    store: Store, queue: QueueId, number: PullRequestNumber, head: Sha
) -> ImpactedTargets | None:
    body = await store.impacted_targets(queue, number, head)
    return None if body is None else await decode_targets_in_thread(body)


decode_queue_change = json.Decoder(QueueChanged).decode


async def read_concluded_submissions(store: Store, queue: Queue, take: int) -> list[Submission]:
    """The submissions that ended last, newest first."""
    return list(map(decode_submission, await store.concluded_submissions(queue.id, take)))


async def read_last_state_changes(store: Store, queue: Queue) -> list[QueueChanged]:
    """With which a user, or the queue itself, last paused or drained the queue; then the last entry that gave another
    reason for it. Empty while the queue runs."""
    if queue.requested_state is QueueState.RUNNING:
        return []
    bodies = await store.last_change(queue.id, queue.requested_state), await store.last_state_entry(queue.id)
    return [decode_queue_change(body) for body in dict.fromkeys(bodies) if body is not None]
