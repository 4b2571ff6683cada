"""The runs of one queue, in the order of planning."""

from collections.abc import Iterator

from mergeyard.domain.ids import RunId, Sha
from mergeyard.domain.instants import Instant
from mergeyard.domain.states import RunStatus
from mergeyard.ports.store import Changed, ResultsPage, StoredRun
from mergeyard.ports.writes import RunRow


class Runs:
    def __init__(self) -> None:
        self._rows: dict[RunId, RunRow] = {}
        self._places: dict[RunId, int] = {}
        self._live: dict[RunId, None] = {}
        self._deleted_passed: set[RunId] = set()

    def put(self, row: RunRow) -> None:
        self._rows[row.id] = row
        self._places.setdefault(row.id, len(self._places) + 1)
        if row.live:
            self._live[row.id] = None
        else:
            self._live.pop(row.id, None)

    def body(self, run: RunId) -> bytes | None:
        row = self._rows.get(run)
        return None if row is None else row.body

    def live(self) -> tuple[bytes, ...]:
        return tuple(self._rows[run].body for run in sorted(self._live, key=self._place))

    def changed(self, runs: set[RunId]) -> tuple[Changed, ...]:
        rows = (self._rows[run] for run in sorted(runs, key=self._place))
        return tuple(Changed(row.live, row.body) for row in rows)

    def decided(self, since: Instant, until: Instant, before: int = 0) -> list[StoredRun]:
        """Those that were started and decided in this time, the latest first."""
        found = [
            (row.decided_at, self._places[row.id], row.body)
            for row in self._rows.values()
            if row.started_at is not None and row.decided_at is not None and since <= row.decided_at
        ]
        return [StoredRun(*each) for each in sorted(found, reverse=True) if each[:2] < (until, before)]

    def results(self, since: Instant, until: Instant, offset: int, take: int) -> ResultsPage:
        tested = {row.body: row.tested for row in self._rows.values()}
        end, skipped, page = 0, 0, list[bytes]()
        for run in self.decided(since, until):
            begin, end = end, end + tested[run.body]
            if begin < end and begin < offset + take and end > offset:
                skipped = skipped if page else offset - begin
                page.append(run.body)
        return ResultsPage(end, skipped, tuple(page))

    def has(self, run: RunId) -> bool:
        return run in self._rows

    def had(self, run: RunId) -> bool:
        return run in self._rows or run in self._deleted_passed

    def tests(self, sha: Sha) -> bool:
        return any(row.tip == sha for row in self._rows.values())

    def ended(self, before: Instant) -> Iterator[tuple[Instant, RunId]]:
        for row in self._rows.values():
            if row.ended_at is not None and row.ended_at < before:
                yield row.ended_at, row.id

    def delete(self, run: RunId) -> Sha | None:
        """The commit that it tested."""
        row = self._rows.pop(run)
        if row.status is RunStatus.SUCCEEDED:
            self._deleted_passed.add(run)
        return row.tip

    def _place(self, run: RunId) -> int:
        return self._places[run]
