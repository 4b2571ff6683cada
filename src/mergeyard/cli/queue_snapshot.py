"""Snapshots of a queue for `mergeyard top`: how they are read, again and again, and which lanes they have."""

from collections.abc import Iterable, Mapping, Sequence
from heapq import nlargest
from itertools import groupby, islice
from threading import Event, Lock, Thread
from typing import Self

from msgspec import Struct
from msgspec.structs import replace

from mergeyard.cli.output import is_not_ready
from mergeyard.cli.session import translate_error
from mergeyard.client import (
    Client,
    EnqueuedPullRequest,
    MergeyardError,
    Queue,
    QueueName,
    RetryPolicy,
    Run,
    SubmittedPullRequest,
    Unreachable,
)

UNDER_TEST_STATES = {"testing", "tests_passed", "pending_failure"}

PullRequests = tuple[EnqueuedPullRequest, ...]


class BatchSnapshot(Struct, frozen=True):
    """Pull requests that are tested together, and their run if it was fetched."""

    pull_requests: PullRequests
    run: Run | None

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(pull_request.pr_number for pull_request in self.pull_requests)

    @property
    def is_bisecting(self) -> bool:
        """Whether the queue searches for the culprit of a failed batch among these pull requests."""
        if self.run is None:
            return False
        first, tested = self.pull_requests[0], {each.pr_number for each in self.run.tested_pull_requests}
        waits_for_batch = not tested.isdisjoint(first.reason.waiting_for)
        is_searched = first.reason.code == "bisection" or (waits_for_batch and len(tested) > 1)
        return self.run.is_bisection or (first.state == "pending_failure" and is_searched)


class QueueSnapshot(Struct, frozen=True, kw_only=True):
    queue: Queue
    runs: Mapping[str, Run]
    finished: tuple[SubmittedPullRequest, ...]
    """Latest first."""
    error: str | None = None
    """Of a later poll, which failed."""

    @property
    def name(self) -> QueueName:
        return self.queue.queue_name

    @property
    def pull_requests(self) -> PullRequests:
        return self.queue.enqueued_pull_requests or ()

    @property
    def waiting(self) -> PullRequests:
        others = [each for each in self.pull_requests if each.state not in UNDER_TEST_STATES]
        return tuple(each for each in others if not is_not_ready(each))

    @property
    def not_ready(self) -> PullRequests:
        return tuple(filter(is_not_ready, self.pull_requests))

    @property
    def testing(self) -> list[BatchSnapshot]:
        return [batch for batch in self._batches if not batch.is_bisecting]

    @property
    def bisecting(self) -> list[BatchSnapshot]:
        return [batch for batch in self._batches if batch.is_bisecting]

    @property
    def _batches(self) -> list[BatchSnapshot]:
        groups = groupby(
            list_under_test(self.queue), key=lambda pull_request: pull_request.test_run_id or pull_request.id
        )
        return [BatchSnapshot(tuple(pull_requests), self.runs.get(run)) for run, pull_requests in groups]


class LoadingQueue(Struct, frozen=True, kw_only=True):
    """A queue that was chosen and not read yet."""

    name: QueueName
    error: str | None = None


def list_under_test(queue: Queue) -> PullRequests:
    pull_requests = queue.enqueued_pull_requests or ()
    return tuple(pull_request for pull_request in pull_requests if pull_request.state in UNDER_TEST_STATES)


POLL_INTERVAL_S = 1.0
MAX_RUNS = 20
"""More do not fit on a screen."""
MAX_FINISHED = 10
MAX_PULL_REQUESTS_PER_REQUEST = 50
NO_RETRY_POLICY = RetryPolicy(total_timeout_s=0, response_timeout_s=10)
"""The next poll follows anyway."""


def fetch_snapshot(client: Client, name: QueueName, previous: QueueSnapshot | None = None) -> QueueSnapshot:
    """`previous`: the snapshot fetched before this one."""
    queue = client.get_queue(name)
    latest = client.list_pull_requests(name, take=MAX_PULL_REQUESTS_PER_REQUEST).pull_requests
    earlier = () if previous is None else previous.finished
    by_id = {each.id: each for each in (*latest, *earlier, *fetch_departed(client, queue, latest, previous))}
    finished = nlargest(
        MAX_FINISHED, (each for each in by_id.values() if each.is_concluded), key=lambda each: each.state_changed_at
    )
    return QueueSnapshot(queue=queue, runs=fetch_runs(client, name, queue), finished=tuple(finished))


def fetch_departed(
    client: Client, queue: Queue, latest: Iterable[SubmittedPullRequest], previous: QueueSnapshot | None
) -> Sequence[SubmittedPullRequest]:
    """Those that left the queue since `previous`, unless they are among the latest submissions."""
    known = {each.id for each in latest}
    enqueued_ids = {each.id for each in queue.enqueued_pull_requests or ()}
    departed = [each for each in previous.pull_requests if each.id not in enqueued_ids] if previous else []
    numbers = [each.pr_number for each in departed if each.id not in known][:MAX_PULL_REQUESTS_PER_REQUEST]
    return client.get_pull_requests(queue.queue_name, numbers).pull_requests if numbers else ()


def fetch_runs(client: Client, name: QueueName, queue: Queue) -> dict[str, Run]:
    """The server still returns a run that ended a moment ago."""
    ids = dict.fromkeys(pull_request.test_run_id for pull_request in list_under_test(queue))
    return {run: client.get_run(name, run) for run in islice(filter(None, ids), MAX_RUNS)}


class SnapshotPoller:
    """Reads one of the queues again and again, in a thread: `with SnapshotPoller(client, names) as poller`."""

    def __init__(self, client: Client, names: Sequence[QueueName], chosen: int = 0) -> None:
        self.latest: QueueSnapshot | LoadingQueue = LoadingQueue(name=names[chosen])
        self.chosen = chosen
        self.names = names
        self._client = client
        self._lock = Lock()
        """Held while `latest` and `chosen` change together."""
        self._wake = Event()
        self._stopping = False
        self._thread = Thread(target=self._poll, daemon=True)

    def __enter__(self) -> Self:
        self.latest = fetch_snapshot(self._client, self.names[self.chosen])
        self._client.retry_policy = NO_RETRY_POLICY
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Does not wait for a poll in progress."""
        self._stopping = True
        self._wake.set()

    def choose(self, step: int) -> None:
        """Chooses the queue so many places further in the list, and reads it now."""
        if not step or len(self.names) == 1:
            return
        with self._lock:
            self.chosen = (self.chosen + step) % len(self.names)
            self.latest = LoadingQueue(name=self.names[self.chosen])
        self._wake.set()

    def _poll(self) -> None:
        while True:
            self._wake.wait(POLL_INTERVAL_S)
            self._wake.clear()
            if self._stopping:
                return
            previous = self.latest
            try:
                snapshot = self._fetch(previous)
            except RuntimeError:
                return  # the client was closed because the user quit
            with self._lock:
                if self.names[self.chosen] == previous.name:
                    self.latest = snapshot

    def _fetch(self, previous: QueueSnapshot | LoadingQueue) -> QueueSnapshot | LoadingQueue:
        try:
            return fetch_snapshot(
                self._client, previous.name, previous if isinstance(previous, QueueSnapshot) else None
            )
        except MergeyardError as error:
            return replace(previous, error=" ".join(translate_error(error)))
        except Unreachable as error:
            return replace(previous, error=str(error))


class LaneBatch(Struct, frozen=True):
    batch: BatchSnapshot
    also_on: tuple[BatchSnapshot, ...]
    """The batches of other lanes that it is tested on top of, except those below another one of them."""


class Lane(Struct, frozen=True):
    """Batches that are tested one on top of the other."""

    start: str
    """What the first of them is tested on top of: the target branch, or a batch of another lane."""
    batches: tuple[LaneBatch, ...]


def lay_out_lanes(snapshot: QueueSnapshot) -> list[Lane]:
    """A batch follows the last batch of the lane that it is tested on top of, or starts a lane of its own."""
    lanes, placed, queue = list[Lane](), list[BatchSnapshot](), snapshot.queue
    for batch in snapshot.testing:
        ahead = [other for other in placed if is_on_top_of(batch, other, queue)]
        last = ahead[-1] if ahead else None
        also_on = tuple(other for other in ahead[:-1] if not any(is_on_top_of(each, other, queue) for each in ahead))
        tails = [lane.batches[-1].batch for lane in lanes]
        added = LaneBatch(batch, also_on)
        if last is not None and last in tails:
            at = tails.index(last)
            lanes[at] = replace(lanes[at], batches=(*lanes[at].batches, added))
        else:
            lanes.append(Lane(queue.branch if last is None else format_numbers(last), (added,)))
        placed.append(batch)
    return lanes


def is_on_top_of(batch: BatchSnapshot, other: BatchSnapshot, queue: Queue) -> bool:
    """Whether `other`, a batch further ahead, is below this one. In single mode every batch is on top of all others
    ahead; in parallel mode its run names them."""
    if queue.mode == "single":
        return batch != other
    return batch.run is not None and not set(other.numbers).isdisjoint(batch.run.dependent_prs)


def format_numbers(batch: BatchSnapshot) -> str:
    return " + ".join(f"#{number}" for number in batch.numbers)
