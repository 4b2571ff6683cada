"""The runs of one queue, in the order of planning."""

from mergeyard.domain.ids import RunId
from mergeyard.domain.instants import Instant
from mergeyard.ports.store import Changed
from mergeyard.ports.writes import RunRow


class Runs:
    def __init__(self) -> None:
        self._rows: dict[RunId, RunRow] = {}
        self._places: dict[RunId, int] = {}
        self._live: dict[RunId, None] = {}

    def put(self, row: RunRow) -> None:
        self._rows[row.id] = row
        self._places.setdefault(row.id, len(self._places))
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

    def decided(self, since: Instant, until: Instant) -> tuple[bytes, ...]:
        """Those that were started and decided in this time, the latest first."""
        found = [
            (row.decided_at, self._places[row.id], row.body)
            for row in self._rows.values()
            if row.started_at is not None and row.decided_at is not None and since <= row.decided_at < until
        ]
        return tuple(body for _, _, body in sorted(found, reverse=True))

    def _place(self, run: RunId) -> int:
        return self._places[run]
