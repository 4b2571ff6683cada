"""What only plain repositories do: refs that others write as they like, and one git process that reads them all."""

import asyncio
import json
import os
import shutil
import signal
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import uvloop
from msgspec.structs import replace

from mergeyard.adapters.host_plain.host import PlainHost
from mergeyard.adapters.host_plain.readers import Readers
from mergeyard.domain.config import LandingMethod, MergeMethod
from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.repositories import Repo
from mergeyard.ports.host import HostTrouble
from tests.contract.host.stage import ONE, REPO, TWO, PlainStage
from tests.support.asynchronous import asynchronous
from tests.support.repositories import Origin

LANDED = Sha("1" * 40)
DATA = {"title": "t", "author": "a", "base": "main", "branch": "b", "draft": False, "state": "open"}
NOBODY = 65534


async def head_of(host: PlainHost, number: PrNumber = ONE) -> Sha:
    pull = await host.pull(REPO, number)
    assert pull
    return pull.head


def readers_of(folder: Path) -> list[int]:
    """The git processes that read this repository."""
    found: list[int] = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"cat-file" in words and f"--git-dir={folder}".encode() in words:
            found.append(int(entry.parent.name))
    return found


# What the reader sees


@asynchronous
async def test_what_is_made_moved_and_packed_after_the_reader_started_is_seen(plain: PlainStage):
    plain.open(1)
    async with plain.host() as host:
        await head_of(host)
        (reader,) = readers_of(plain.origin.path)
        second = plain.open(2)
        assert await head_of(host, TWO) == second
        plain.origin.run("pack-refs", "--all")
        assert await head_of(host, TWO) == second
        pushed = plain.push(2)
        assert await head_of(host, TWO) == pushed
        plain.origin.run("pack-refs", "--all")
        plain.origin.run("repack", "-a", "-d", "-q")
        plain.origin.run("prune-packed")
        third = plain.open(3)
        plain.origin.run("gc", "--quiet", "--prune=now")
        assert [await head_of(host, PrNumber(n)) for n in (2, 3)] == [pushed, third]
        plain.origin.remove("refs/pull/2/head")
        assert await host.pull(REPO, TWO) is None
        assert readers_of(plain.origin.path) == [reader]


@asynchronous
async def test_many_who_ask_at_once_get_each_their_own_answer(plain: PlainStage):
    heads = [plain.open(number, title=f"number {number}") for number in range(1, 6)]
    async with plain.host() as host:
        pulls = await asyncio.gather(*(host.pull(REPO, PrNumber(n % 5 + 1)) for n in range(200)))
        expected = [(heads[n % 5], f"number {n % 5 + 1}") for n in range(200)]
        assert [(pull.head, pull.title) for pull in pulls if pull] == expected
        assert len(readers_of(plain.origin.path)) == 1


@asynchronous
async def test_one_who_stops_waiting_does_not_shift_the_answers_of_others(plain: PlainStage):
    first, second = plain.open(1), plain.open(2)
    async with plain.host() as host:
        await head_of(host)
        impatient = [asyncio.create_task(host.pull(REPO, ONE)) for _ in range(10)]
        patient = [asyncio.create_task(head_of(host, TWO)) for _ in range(10)]
        await asyncio.sleep(0)
        for task in impatient:
            task.cancel()
        assert await asyncio.gather(*patient) == [second] * 10
        assert await head_of(host) == first


async def outlive_a_dead_reader(plain: PlainStage) -> None:
    head = plain.open(1)
    async with plain.host() as host:
        await head_of(host)
        (reader,) = readers_of(plain.origin.path)
        os.kill(reader, signal.SIGKILL)
        assert await asyncio.gather(*(head_of(host) for _ in range(20))) == [head] * 20
        assert await host.pull(REPO, TWO) is None
        assert len(readers_of(plain.origin.path)) == 1
    assert readers_of(plain.origin.path) == []


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_a_reader_that_was_killed_is_replaced(plain: PlainStage, run: Callable[[Coroutine[Any, Any, None]], None]):
    run(outlive_a_dead_reader(plain))


@asynchronous
async def test_only_so_many_repositories_have_a_reader_at_once(tmp_path: Path):
    origins = [Origin.made(tmp_path / f"{n}.git") for n in range(4)]
    readers = Readers(most=2)
    for origin in origins:
        await readers.of(origin.path)
    assert [len(readers_of(origin.path)) for origin in origins] == [0, 0, 1, 1]
    await readers.close()
    assert [len(readers_of(origin.path)) for origin in origins] == [0, 0, 0, 0]


@asynchronous
async def test_a_repository_that_vanished_is_trouble_and_one_in_its_place_is_read(plain: PlainStage):
    plain.open(1)
    async with plain.host() as host:
        await head_of(host)
        shutil.rmtree(plain.origin.path)
        with pytest.raises(HostTrouble):
            await host.pull(REPO, ONE)
        with pytest.raises(HostTrouble):
            await host.refs(REPO)
        with pytest.raises(HostTrouble):
            await host.mark_merged(REPO, ONE, LANDED, LANDED)
        assert not await host.knows(REPO)
        plain.origin.path.mkdir()
        plain.origin.run("init", "--quiet", "--bare", "--object-format=sha256")
        plain.origin.commit("main", {"other.txt": "1"})
        assert await host.pull(REPO, ONE) is None
        opened = plain.open(1)
        assert await head_of(host) == opened


@asynchronous
async def test_refs_are_the_very_same_for_as_long_as_nothing_happened(plain: PlainStage):
    plain.open(1)
    async with plain.host() as host:
        before = await host.refs(REPO)
        plain.origin.run("pack-refs", "--all")
        assert await host.refs(REPO) is before
        head = plain.open(2)
        after = await host.refs(REPO)
        assert {ref: after[ref] for ref in after.keys() - before.keys()}["refs/pull/2/head"] == head
        assert await host.refs(REPO) is after


@asynchronous
async def test_whoever_followed_every_change_sees_what_a_newcomer_sees(plain: PlainStage):
    plain.open(1)
    async with plain.host() as host:
        await host.refs(REPO)
        plain.origin.commit("main", {"x": "1"})
        plain.origin.set("refs/pull/1/head", plain.origin.tip("main"))
        plain.origin.branch("new", upon="main")
        await host.refs(REPO)
        plain.origin.remove("new")
        plain.origin.remove("refs/pull/1/meta")
        followed = await host.refs(REPO)
    async with plain.host() as newcomer:
        assert followed == await newcomer.refs(REPO)
    assert followed.keys() == {"refs/heads/main", "refs/heads/topic-1", "refs/pull/1/head"}
    assert followed["refs/pull/1/head"] == followed["refs/heads/main"] == plain.origin.tip("main")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a repository away")
@asynchronous
async def test_a_repository_of_another_user_is_served(plain: PlainStage):
    head = plain.open(1)
    for path in [plain.origin.path, *plain.origin.path.rglob("*")]:
        os.chown(path, NOBODY, NOBODY)
    async with plain.host() as host:
        assert await head_of(host) == head
        assert (await host.refs(REPO))["refs/pull/1/head"] == head
        await host.mark_merged(REPO, ONE, head, LANDED)
    assert plain.meta(1)["state"] == "merged"


# What others write


@pytest.mark.parametrize(
    "title", ["", "\n\n", "a\x00b", "\u202egpj", "🙂" * 1000, "<script>", "[bold]", "a missing\n", "x" * 60_000]
)
@asynchronous
async def test_a_title_is_any_text(plain: PlainStage, title: str):
    plain.open(1, title=title)
    async with plain.host() as host:
        pull = await host.pull(REPO, ONE)
        assert pull
        assert pull.title == title


BAD = {
    "empty": "",
    "no text beside it": b'{"base": "main", "\x80": 1}',
    "no JSON": "title: x",
    "no object": "[]",
    "no UTF-8": b'{"base": "\xff"}',
    "a lone surrogate": '{"base": "\\ud800"}',
    "without base": "{}",
    "a number for a title": json.dumps(DATA | {"title": 1}),
    "a word for draft": json.dumps(DATA | {"draft": "yes"}),
    "null for a branch": json.dumps(DATA | {"branch": None}),
    "another state": json.dumps(DATA | {"state": "reopened"}),
    "too deep": "[" * 60_000,
    "too large": json.dumps(DATA | {"title": "x" * 65_536}),
}


@pytest.mark.parametrize("raw", BAD.values(), ids=BAD.keys())
@asynchronous
async def test_data_that_is_none_is_trouble_that_names_the_ref(plain: PlainStage, raw: str | bytes):
    plain.open(1)
    second = plain.open(2)
    plain.write_meta(1, raw)
    async with plain.host() as host:
        with pytest.raises(HostTrouble, match="refs/pull/1/meta"):
            await host.pull(REPO, ONE)
        assert await head_of(host, TWO) == second


@asynchronous
async def test_a_ref_to_the_wrong_kind_of_object_is_trouble_that_names_it(plain: PlainStage):
    commit = plain.open(1)
    async with plain.host() as host:
        plain.origin.set("refs/pull/1/meta", commit)
        with pytest.raises(HostTrouble, match="refs/pull/1/meta is a commit"):
            await host.pull(REPO, ONE)
        plain.origin.set("refs/pull/1/head", plain.origin.tree("main"))
        with pytest.raises(HostTrouble, match="refs/pull/1/head is a tree"):
            await host.pull(REPO, ONE)


@asynchronous
async def test_a_ref_to_an_object_that_is_lost_is_trouble_and_not_a_pull_request_that_is_gone(plain: PlainStage):
    plain.open(1)
    async with plain.host() as host:
        blob = plain.origin.tip("refs/pull/1/meta")
        (plain.origin.path / "objects" / blob[:2] / blob[2:]).unlink()
        with pytest.raises(HostTrouble, match="refs/pull/1"):
            await host.pull(REPO, ONE)


@asynchronous
async def test_one_of_the_two_refs_alone_is_no_pull_request(plain: PlainStage):
    plain.open(1)
    plain.origin.remove("refs/pull/1/meta")
    async with plain.host() as host:
        assert await host.pull(REPO, ONE) is None


# Marking as merged


@asynchronous
async def test_whatever_else_stands_in_the_data_is_kept(plain: PlainStage):
    head = plain.open(1, labels=["a", {"b": 1.50}], title="Zoë\u2028")
    async with plain.host() as host:
        await host.mark_merged(REPO, ONE, head, LANDED)
    assert plain.meta(1) == plain.data[1] | {"state": "merged"}


@asynchronous
async def test_one_that_was_closed_meanwhile_is_shown_as_merged_all_the_same(plain: PlainStage):
    head = plain.open(1)
    plain.close(1)
    async with plain.host() as host:
        await host.mark_merged(REPO, ONE, head, LANDED)
    assert plain.meta(1)["state"] == "merged"


@asynchronous
async def test_one_that_was_pushed_to_since_stays_open(plain: PlainStage):
    head = plain.open(1)
    plain.push(1)
    async with plain.host() as host:
        await host.mark_merged(REPO, ONE, head, LANDED)
    assert plain.meta(1)["state"] == "open"


@asynchronous
async def test_one_that_is_gone_needs_no_mark(plain: PlainStage):
    async with plain.host() as host:
        await host.mark_merged(REPO, ONE, LANDED, LANDED)
    assert "refs/pull/1/meta" not in plain.origin.refs()


@asynchronous
async def test_many_who_mark_and_change_at_once_lose_nothing(plain: PlainStage):
    heads = [plain.open(number, note=number) for number in range(1, 4)]
    async with plain.host() as host:
        marks = [host.mark_merged(REPO, PrNumber(n + 1), heads[n], LANDED) for n in range(3) for _ in range(3)]
        await asyncio.gather(*marks)
    assert [(plain.meta(n)["state"], plain.meta(n)["note"]) for n in (1, 2, 3)] == [("merged", n) for n in (1, 2, 3)]


@asynchronous
async def test_no_hook_of_the_repository_runs(plain: PlainStage):
    head = plain.open(1)
    plain.origin.hook("reference-transaction", "exit 1")
    async with plain.host() as host:
        await host.mark_merged(REPO, ONE, head, LANDED)
    assert plain.meta(1)["state"] == "merged"


# Refs and names


@asynchronous
async def test_our_own_test_branches_and_foreign_refs_tell_nothing(plain: PlainStage):
    plain.open(1)
    async with plain.host() as host:
        before = await host.refs(REPO)
        for ref in ("refs/heads/mergeyard/pr-1/x", "refs/pull/1/merge", "refs/pull/x/head", "refs/tags/v1"):
            plain.origin.set(ref, plain.origin.tip("main"))
        assert await host.refs(REPO) == before
        plain.origin.set("refs/heads/mergeyard-docs", plain.origin.tip("main"))
        assert (await host.refs(REPO)).keys() - before.keys() == {"refs/heads/mergeyard-docs"}


@pytest.mark.parametrize(
    ("ref", "number"),
    [
        ("refs/pull/12/head", 12),
        ("refs/pull/12/meta", 12),
        ("refs/pull/2147483647/head", 2147483647),
        ("refs/pull/2147483648/head", None),
        ("refs/pull/0/head", None),
        ("refs/pull/01/head", None),
        ("refs/pull/\N{ARABIC-INDIC DIGIT ONE}/head", None),
        ("refs/pull/1/merge", None),
        ("refs/pull/1/head\n", None),
        ("refs/heads/refs/pull/1/head", None),
    ],
)
@asynchronous
async def test_the_number_is_read_off_the_ref(plain: PlainStage, ref: str, number: int | None):
    async with plain.host() as host:
        assert host.number_of(ref) == number


@pytest.mark.parametrize("name", ["..", ".", "", "-x", "a/b", "../x", "a\0b", "a\n", "x" * 101, "ä"])
@asynchronous
async def test_no_name_leads_outside_the_root(plain: PlainStage, name: str):
    async with plain.host() as host:
        for repo in (Repo("git.local", name, "app"), Repo("git.local", "acme", name)):
            assert not await host.knows(repo)
            with pytest.raises(HostTrouble):
                await host.remote(repo)
            with pytest.raises(HostTrouble):
                await host.pull(repo, ONE)


@asynchronous
async def test_names_are_compared_exactly(plain: PlainStage):
    async with plain.host() as host:
        shouted = replace(REPO, name="APP")
        assert host.same_name(shouted) == shouted
        assert not await host.knows(shouted)


@asynchronous
async def test_the_remote_is_the_folder_itself_and_there_are_no_pages(plain: PlainStage):
    async with plain.host() as host:
        assert (await host.remote(REPO)).url == str(plain.origin.path)
        assert host.pull_page(REPO, ONE) is None
        assert host.every_head_ref == "refs/pull/*/head"
        assert not any(host.refuses(method, landing) for method in MergeMethod for landing in LandingMethod)
        assert not host.judges_mergeability
        assert await host.required_statuses(REPO, "main") == ()
