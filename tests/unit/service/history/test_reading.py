"""The past is read in parts, and nothing is lost or counted twice between them."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from mergeyard.adapters.store_sqlite.store import SqliteStore
from mergeyard.domain.ids import QueueId, RunId
from mergeyard.domain.instants import HOUR, Instant
from mergeyard.domain.states import PrState, RunStatus
from mergeyard.ports.writes import AppendEntries, RunRow
from mergeyard.service import shelving
from mergeyard.service.history import reading
from mergeyard.service.history.reading import WATCH, Histories
from tests.contract.store.given import NEXT, OTHER, QUEUE, a_queue, a_turn, an_entry, opened
from tests.support.asynchronous import asynchronous
from tests.support.builders import a_run

DAY = 24 * HOUR
SINCE, UNTIL = Instant(100 * DAY), Instant(140 * DAY + 7)
EDGES = [SINCE, SINCE + WATCH - 1, SINCE + WATCH, SINCE + 14 * DAY, 140 * DAY, UNTIL - 1]
OUTSIDE = [SINCE - 1, UNTIL]


def runs_decided(name: str, times: Sequence[int]) -> list[RunRow]:
    runs = [
        replace(
            a_run(1, status=RunStatus.SUCCEEDED),
            id=RunId(f"{name}{at}"),
            started_at=Instant(at - 5),
            decided_at=Instant(at),
        )
        for at in times
    ]
    return [shelving.run_row(run, UNTIL) for run in runs]


@asynchronous
async def test_everything_between_is_read_once_and_nothing_else(tmp_path: Path):
    async with opened(SqliteStore(tmp_path / "yard.db")) as store:
        await store.commit(a_queue(), a_queue(OTHER, key=NEXT))
        ends = [an_entry("end", at=at, to=PrState.MERGED) for at in EDGES + OUTSIDE]
        others = [an_entry("tested", at=at, to=PrState.TESTING) for at in EDGES]
        await store.commit(AppendEntries((*ends, *others, an_entry("elsewhere", at=EDGES[1], queue=OTHER))))
        await store.commit(a_turn(1, *runs_decided("run", EDGES + OUTSIDE)))
        past = await Histories(store).read([QUEUE], SINCE, UNTIL)
        assert [figure.at for figure in past.figures] == EDGES
        assert sorted(run.decided_at for run in past.runs) == EDGES


@asynchronous
async def test_several_queues_are_read_together_and_told_apart(tmp_path: Path):
    async with opened(SqliteStore(tmp_path / "yard.db")) as store:
        await store.commit(a_queue(), a_queue(OTHER, key=NEXT))
        for queue in (QUEUE, OTHER):
            await store.commit(AppendEntries((an_entry("end", at=SINCE, to=PrState.FAILED, queue=queue),)))
            await store.commit(a_turn(1, *runs_decided("run", [SINCE]), queue=queue))
        past = await Histories(store).read([QUEUE, OTHER], SINCE, UNTIL)
        queues: set[QueueId] = {QUEUE, OTHER}
        assert {figure.queue for figure in past.figures} == {run.queue for run in past.runs} == queues


@pytest.mark.parametrize("at_once", [1, 2, 3, 4, 5])
@asynchronous
async def test_runs_are_read_in_chunks_also_when_several_were_decided_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
):
    monkeypatch.setattr(reading, "MAX_RUNS_AT_ONCE", at_once)
    async with opened(SqliteStore(tmp_path / "yard.db")) as store:
        await store.commit(a_queue())
        decided = [SINCE, SINCE, SINCE, SINCE + 1]
        named = [replace(row, id=RunId(f"{place}")) for place, row in enumerate(runs_decided("run", decided))]
        await store.commit(a_turn(1, *named))
        past = await Histories(store).read([QUEUE], SINCE, UNTIL)
        assert sorted(run.decided_at for run in past.runs) == decided
