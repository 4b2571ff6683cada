"""A database moves to any other kind with nothing lost, and the service goes on there where it was."""

import gzip
import stat
from pathlib import Path

from mergeyard.cli.db.exporting import export_to
from mergeyard.cli.db.importing import import_from
from mergeyard.cli.db.tally import count_all
from mergeyard.domain.ids import PrNumber, QueueId, Sha, Ticket
from mergeyard.domain.instants import Instant
from mergeyard.ports.archive import TABLES
from mergeyard.ports.store import AuditPage, Page, Store
from mergeyard.ports.writes import AppendEntries, KeepDelivery
from mergeyard.service.restoring import restore
from tests.contract.archive.holding import ELSEWHERE, HOSTILE, hold_everything
from tests.contract.archive.places import Place, sqlite
from tests.contract.store.given import HEAD, OTHER, QUEUE, REPO, a_run, a_turn, an_entry, digest_of, opened
from tests.support.asynchronous import asynchronous
from tests.support.scenario import a_scenario
from tests.support.shelves import told


async def move(source: Place, target: Place, file: Path) -> None:
    sent = await export_to(file, source.archive)
    assert await import_from(file, target.archive) == tuple(sent)


async def everything(store: Store) -> list[object]:
    """All that can be asked of a store."""
    queues = await store.queues()
    return [
        queues,
        [await store.load(queue.id) for queue in queues],
        [await store.stays(queue.id, Page(take=99)) for queue in queues],
        [await store.decided_runs(queue.id, Instant(0), Instant(99), 99) for queue in queues],
        [await store.entries(queue.id, 0, 99) for queue in queues],
        await store.figures([queue.id for queue in queues], Instant(0), Instant(99)),
        await store.timeline(QUEUE, Ticket(1), 9),
        await store.last_stay(QueueId("q0"), PrNumber(1)),
        await store.last_stay_of_branch(QUEUE, HOSTILE),
        await store.targets(QUEUE, PrNumber(5), HEAD),
        [await store.statuses(repo, Sha(HEAD)) for repo in (REPO, ELSEWHERE)],
        await store.answer("t1", HOSTILE),
        [await store.token(digest_of(name)) for name in ("ada", HOSTILE)],
        await store.tokens(),
        await store.audit(AuditPage(take=99)),
        [await store.cursor(HOSTILE, queue.id) for queue in queues],
        [await store.behind(teller) for teller in (HOSTILE, "b")],
        await store.stuck_since("b", QUEUE),
        [await store.conversation(queue, PrNumber(5)) for queue in (QUEUE, QueueId("q0"))],
        await store.webhooks(),
        await store.deliveries("w1", 9),
        await store.delivery(HOSTILE, HOSTILE),
    ]


@asynchronous
async def test_nothing_is_lost_on_the_way(place: Place, elsewhere: Place, tmp_path: Path):
    await hold_everything(place.store())
    await move(place, elsewhere, tmp_path / "all.jsonl")
    async with opened(place.store()) as before, opened(elsewhere.store()) as after:
        assert await everything(after) == await everything(before)


@asynchronous
async def test_whoever_was_signed_in_signs_in_again_after_the_move(place: Place, elsewhere: Place, tmp_path: Path):
    await hold_everything(place.store())
    await move(place, elsewhere, tmp_path / "all.jsonl")
    async with opened(place.store()) as before, opened(elsewhere.store()) as after:
        assert await before.session(digest_of("ada")) is not None
        assert await after.session(digest_of("ada")) is None


@asynchronous
async def test_every_table_is_put_to_the_test(place: Place):
    await hold_everything(place.store())
    async with place.archive.reading() as reading:
        assert all(count.rows > 0 for count in await count_all(reading))


@asynchronous
async def test_there_and_back_again_gives_the_same_file(embedded: Place, shared: Place, tmp_path: Path):
    end = sqlite(tmp_path / "end")
    await hold_everything(embedded.store())
    await move(embedded, shared, tmp_path / "there.jsonl")
    await move(shared, end, tmp_path / "back.jsonl")
    await export_to(tmp_path / "again.jsonl", end.archive)
    there, back, again = (
        (tmp_path / f"{name}.jsonl").read_bytes().splitlines()[1:] for name in ("there", "back", "again")
    )
    assert there == back == again


@asynchronous
async def test_the_same_things_have_the_same_checksums_in_every_kind_of_database(embedded: Place, shared: Place):
    """All but runs: PostgreSQL leaves gaps between their places."""
    counted: list[object] = []
    for place in (embedded, shared):
        await hold_everything(place.store())
        async with place.archive.reading() as reading:
            counted.append([count for count in await count_all(reading) if count.table != "runs"])
    assert counted[0] == counted[1]


@asynchronous
async def test_a_queue_at_work_is_loaded_as_it_was(elsewhere: Place, tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1, 2, 3)
        await scenario.submit(1, 2, 3)
        await scenario.passes(1)
    place = sqlite(tmp_path)
    await move(place, elsewhere, tmp_path / "all.jsonl.gz")
    async with opened(place.store()) as before, opened(elsewhere.store()) as after:
        (queue,) = await before.queues()
        assert (queue,) == tuple(await after.queues())
        assert told(restore(await after.load(queue.id))) == told(restore(await before.load(queue.id)))


@asynchronous
async def test_what_comes_later_gets_later_numbers(place: Place, elsewhere: Place, tmp_path: Path):
    await hold_everything(place.store())
    await move(place, elsewhere, tmp_path / "all.jsonl")
    async with opened(elsewhere.store()) as store:
        known = max(entry.seq for entry in await store.entries(QUEUE, 0, 99))
        await store.commit(AppendEntries((an_entry("later"),)))
        assert [entry.body for entry in await store.entries(QUEUE, known, 99)] == [b"later"]
        await store.commit(a_turn(5, a_run("b")))
        assert (await store.load(QUEUE)).runs[-1] == b"b"
        await store.commit(KeepDelivery("w1", "e2", b"later"))
        assert (await store.deliveries("w1", 9))[0] == b"later"


@asynchronous
async def test_an_empty_database_moves_too_and_counts_from_one(place: Place, elsewhere: Place, tmp_path: Path):
    await place.archive.migrate()
    await move(place, elsewhere, tmp_path / "all.jsonl")
    async with opened(elsewhere.store()) as store:
        await store.commit(AppendEntries((an_entry("first", queue=None),)))
    assert await elsewhere.ask("SELECT seq FROM journal") == [(1,)]


@asynchronous
async def test_the_file_is_for_us_alone_and_packed_if_its_name_says_so(place: Place, tmp_path: Path):
    await hold_everything(place.store())
    plain, packed = tmp_path / "all.jsonl", tmp_path / "all.jsonl.gz"
    assert await export_to(plain, place.archive) == await export_to(packed, place.archive)
    assert gzip.decompress(packed.read_bytes()).splitlines()[1:] == plain.read_bytes().splitlines()[1:]
    assert {stat.S_IMODE(file.stat().st_mode) for file in (plain, packed)} == {0o600}
    assert sorted(file for file in tmp_path.iterdir() if file.is_file()) == [plain, packed]


@asynchronous
async def test_an_export_holds_one_moment_whatever_is_written_meanwhile(place: Place):
    await hold_everything(place.store())
    async with opened(place.store()) as store, place.archive.reading() as reading:
        first = [row async for row in reading.rows(TABLES[0])]
        await store.commit(a_turn(2, queue=OTHER), AppendEntries((an_entry("meanwhile"),)))
        assert [row async for row in reading.rows(TABLES[0])] == first
        journal = next(table for table in TABLES if table.name == "journal")
        assert len([row async for row in reading.rows(journal)]) == 3


# What only PostgreSQL has


@asynchronous
async def test_replicas_are_told_what_changed_after_the_move(embedded: Place, shared: Place, tmp_path: Path):
    await hold_everything(embedded.store())
    await move(embedded, shared, tmp_path / "all.jsonl")
    for table in ("facts", "stays", "runs"):
        versions = f"SELECT count(*) FROM {table} JOIN queues ON queues.id = queue AND queues.version = {table}.version"
        assert await shared.ask(versions) == await shared.ask(f"SELECT count(*) FROM {table}")
    async with opened(shared.store()) as store:
        await store.commit(a_turn(5, a_run("b")))
        changes = await store.changes(QUEUE, 4)
        assert changes
        assert [run.body for run in changes.runs] == [b"b"]


@asynchronous
async def test_every_repository_with_a_live_queue_can_be_worked_for(embedded: Place, shared: Place, tmp_path: Path):
    await hold_everything(embedded.store())
    await move(embedded, shared, tmp_path / "all.jsonl")
    duties = await shared.ask("SELECT host, name, holder, fence FROM duties ORDER BY name")
    assert duties == [("git.local", "app", None, 0), ("git.local", "other", None, 0)]
