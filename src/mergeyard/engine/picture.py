"""Draws the queue in one line of text, for logs, tests, docs and the command line.

`main ← 12✓ ← 13+14… ← 15` is a passed batch, a batch of two under test, and one that has no run yet; `✗` waits
to be judged. In parallel mode every batch says what it stands on: `main ← 1… ∥ main ← 2… ∥ 1, 2 ← 3`.
A bisection stands behind `⋔`, with the prefixes that it tests.
"""

from collections.abc import Iterable

from mergeyard.domain.config import Mode
from mergeyard.domain.ids import Ticket
from mergeyard.domain.line import Batch, Bisection
from mergeyard.domain.queue import Queue
from mergeyard.domain.states import RunStatus
from mergeyard.engine import holding, proving


def picture(queue: Queue) -> str:
    lane = _single(queue) if queue.mode is Mode.SINGLE else _parallel(queue)
    bare = " ?" if any(run.active for run in proving.bare_runs(queue).values()) else ""
    return lane + bare + "".join(_bisection(queue, each) for each in queue.bisections)


def _single(queue: Queue) -> str:
    return " ← ".join([queue.target.name, *(_batch(queue, batch) for batch in queue.line.batches)])


def _parallel(queue: Queue) -> str:
    lanes = [f"{_foundation(queue, batch)} ← {_batch(queue, batch)}" for batch in queue.line.batches]
    return " ∥ ".join(lanes) or queue.target.name


def _foundation(queue: Queue, batch: Batch) -> str:
    ahead = holding.batches_ahead(queue, batch)
    return ", ".join(_names(queue, other.tickets) for other in ahead) or queue.target.name


def _batch(queue: Queue, batch: Batch) -> str:
    return _names(queue, batch.tickets) + _mark(queue, batch)


def _mark(queue: Queue, batch: Batch) -> str:
    run = holding.current_run(queue, batch)
    if holding.found_good(queue, batch):
        return "✓"
    if run is None or run.restarted:
        return ""
    return "✗" if holding.failed_for_good(queue, run) else "…"


def _bisection(queue: Queue, bisection: Bisection) -> str:
    runs = queue.runs_of(bisection)
    prefixes = [
        _names(queue, (member.ticket for member in run.tested)) + "…"
        for run in sorted(runs, key=lambda run: run.tests)
        if run.status is not RunStatus.FAILED
    ]
    return " ".join([f" ⋔ {_names(queue, bisection.members)}", *([":", *prefixes] if prefixes else [])])


def _names(queue: Queue, tickets: Iterable[Ticket]) -> str:
    known = {ticket: submission.number for ticket in tickets if (submission := queue.submissions.get(ticket))}
    return "+".join(map(str, known.values()))
