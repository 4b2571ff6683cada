"""Behavior that only plain repositories have: refs that others write, and one git process that reads them all."""

import asyncio
import json
import os
import shutil
import signal
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

import pytest
import uvloop
from msgspec.structs import replace

from mergeyard.adapters.host_plain.host import HeadBranches, ObjectReaderCache, PlainHost
from mergeyard.adapters.host_plain.pull_requests import ObjectReader
from mergeyard.domain.config import Config, LandingMethod, MergeMethod
from mergeyard.domain.ids import PullRequestNumber, Repo, Sha
from mergeyard.domain.pull_requests import HeadBranchAccess
from mergeyard.ports.forge import HostRefused, HostUnavailable, PullRequestText
from tests.contract.host.environment import ONE, REPO, TWO, PlainEnvironment
from tests.support.asynchronous import asynchronous
from tests.support.repositories import Origin
from tests.support.scenario import a_scenario

LANDED = Sha("1" * 40)
DATA = {"title": "t", "author": "a", "base": "main", "branch": "b", "draft": False, "state": "open"}
OTHER_USER = 65534


async def head_of(host: PlainHost, number: PullRequestNumber = ONE) -> Sha:
    pull_request = await host.read_pull_request(REPO, number)
    assert pull_request
    return pull_request.head


def readers_of(folder: Path) -> list[int]:
    """The git processes that read this repository."""
    found: list[int] = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            arguments = entry.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"cat-file" in arguments and f"--git-dir={folder}".encode() in arguments:
            found.append(int(entry.parent.name))
    return found


# The reader process


@asynchronous
async def test_the_reader_sees_refs_that_are_created_moved_and_packed_after_it_started(plain: PlainEnvironment):
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
        assert [await head_of(host, PullRequestNumber(n)) for n in (2, 3)] == [pushed, third]
        plain.origin.delete_ref("refs/pull/2/head")
        assert await host.read_pull_request(REPO, TWO) is None
        assert readers_of(plain.origin.path) == [reader]


@asynchronous
async def test_concurrent_readers_each_get_their_own_result(plain: PlainEnvironment):
    heads = [plain.open(number, title=f"number {number}") for number in range(1, 6)]
    async with plain.host() as host:
        pull_requests = await asyncio.gather(
            *(host.read_pull_request(REPO, PullRequestNumber(n % 5 + 1)) for n in range(200))
        )
        expected = [(heads[n % 5], f"number {n % 5 + 1}") for n in range(200)]
        assert [(pull_request.head, pull_request.title) for pull_request in pull_requests if pull_request] == expected
        assert len(readers_of(plain.origin.path)) == 1


@asynchronous
async def test_a_cancelled_read_does_not_mix_up_the_results_of_others(plain: PlainEnvironment):
    first, second = plain.open(1), plain.open(2)
    async with plain.host() as host:
        await head_of(host)
        impatient = [asyncio.create_task(host.read_pull_request(REPO, ONE)) for _ in range(10)]
        patient = [asyncio.create_task(head_of(host, TWO)) for _ in range(10)]
        await asyncio.sleep(0)
        for task in impatient:
            task.cancel()
        assert await asyncio.gather(*patient) == [second] * 10
        assert await head_of(host) == first


async def outlive_a_dead_reader(plain: PlainEnvironment) -> None:
    head = plain.open(1)
    async with plain.host() as host:
        await head_of(host)
        (reader,) = readers_of(plain.origin.path)
        os.kill(reader, signal.SIGKILL)
        assert await asyncio.gather(*(head_of(host) for _ in range(20))) == [head] * 20
        assert await host.read_pull_request(REPO, TWO) is None
        assert len(readers_of(plain.origin.path)) == 1
    assert readers_of(plain.origin.path) == []


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_a_reader_that_was_killed_is_replaced(
    plain: PlainEnvironment, run: Callable[[Coroutine[Any, Any, None]], None]
):
    run(outlive_a_dead_reader(plain))


@asynchronous
async def test_the_number_of_readers_is_limited(tmp_path: Path):
    origins = [Origin.create(tmp_path / f"{n}.git") for n in range(4)]
    readers = ObjectReaderCache(max_readers=2)
    for origin in origins:
        await readers.get(origin.path)
    assert [len(readers_of(origin.path)) for origin in origins] == [0, 0, 1, 1]
    await readers.close()
    assert [len(readers_of(origin.path)) for origin in origins] == [0, 0, 0, 0]


@asynchronous
async def test_a_removed_repository_is_an_error_and_its_replacement_is_read(plain: PlainEnvironment):
    plain.open(1)
    async with plain.host() as host:
        await head_of(host)
        shutil.rmtree(plain.origin.path)
        with pytest.raises(HostUnavailable):
            await host.read_pull_request(REPO, ONE)
        with pytest.raises(HostUnavailable):
            await host.refs(REPO)
        with pytest.raises(HostUnavailable):
            await host.mark_merged(REPO, ONE, LANDED, LANDED)
        assert not await host.has_repository(REPO)
        plain.origin.path.mkdir()
        plain.origin.run("init", "--quiet", "--bare", "--object-format=sha256")
        plain.origin.commit("main", {"other.txt": "1"})
        assert await host.read_pull_request(REPO, ONE) is None
        opened = plain.open(1)
        assert await head_of(host) == opened


@asynchronous
async def test_a_repository_in_a_format_that_git_does_not_know_is_no_outage(plain: PlainEnvironment):
    plain.open(1)
    async with plain.host() as host:
        await head_of(host)
        plain.origin.run("config", "core.repositoryFormatVersion", "1")
        plain.origin.run("config", "extensions.refStorage", "of-a-newer-git")
        for call in (host.refs(REPO), host.branch_tip(REPO, "main")):
            with pytest.raises(HostRefused, match="Install a newer git here"):
                await call
    async with plain.host() as host:
        with pytest.raises(HostRefused, match="Install a newer git here"):
            await host.read_pull_request(REPO, ONE)


@asynchronous
async def test_refs_are_the_same_object_while_nothing_changes(plain: PlainEnvironment):
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
async def test_incremental_and_fresh_reads_of_the_refs_are_equal(plain: PlainEnvironment):
    plain.open(1)
    async with plain.host() as host:
        await host.refs(REPO)
        plain.origin.commit("main", {"x": "1"})
        plain.origin.set_ref("refs/pull/1/head", plain.origin.tip("main"))
        plain.origin.branch("new", base="main")
        await host.refs(REPO)
        plain.origin.delete_ref("new")
        plain.origin.delete_ref("refs/pull/1/meta")
        followed = await host.refs(REPO)
    async with plain.host() as newcomer:
        assert followed == await newcomer.refs(REPO)
    assert followed.keys() == {"refs/heads/main", "refs/heads/topic-1", "refs/pull/1/head"}
    assert followed["refs/pull/1/head"] == followed["refs/heads/main"] == plain.origin.tip("main")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a repository away")
@asynchronous
async def test_a_repository_of_another_user_is_served(plain: PlainEnvironment):
    head = plain.open(1)
    for path in [plain.origin.path, *plain.origin.path.rglob("*")]:
        os.chown(path, OTHER_USER, OTHER_USER)
    async with plain.host() as host:
        assert await head_of(host) == head
        assert (await host.refs(REPO))["refs/pull/1/head"] == head
        await host.mark_merged(REPO, ONE, head, LANDED)
    assert plain.meta(1)["state"] == "merged"


# Metadata that others write


@pytest.mark.parametrize(
    "title", ["", "\n\n", "a\x00b", "\u202egpj", "🙂" * 1000, "<script>", "[bold]", "a missing\n", "x" * 60_000]
)
@asynchronous
async def test_a_title_is_any_text(plain: PlainEnvironment, title: str):
    plain.open(1, title=title)
    async with plain.host() as host:
        pull_request = await host.read_pull_request(REPO, ONE)
        assert pull_request
        assert pull_request.title == title


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
async def test_invalid_metadata_is_an_error_that_names_the_ref(plain: PlainEnvironment, raw: str | bytes):
    plain.open(1)
    second = plain.open(2)
    plain.write_meta(1, raw)
    async with plain.host() as host:
        with pytest.raises(HostUnavailable, match="refs/pull/1/meta"):
            await host.read_pull_request(REPO, ONE)
        assert await head_of(host, TWO) == second


@asynchronous
async def test_a_ref_to_the_wrong_kind_of_object_is_an_error_that_names_it(plain: PlainEnvironment):
    commit = plain.open(1)
    async with plain.host() as host:
        plain.origin.set_ref("refs/pull/1/meta", commit)
        with pytest.raises(HostUnavailable, match="refs/pull/1/meta is a commit"):
            await host.read_pull_request(REPO, ONE)
        plain.origin.set_ref("refs/pull/1/head", plain.origin.tree("main"))
        with pytest.raises(HostUnavailable, match="refs/pull/1/head is a tree"):
            await host.read_pull_request(REPO, ONE)


@asynchronous
async def test_a_ref_to_a_missing_object_is_an_error_and_not_a_missing_pull_request(plain: PlainEnvironment):
    plain.open(1)
    async with plain.host() as host:
        blob = plain.origin.tip("refs/pull/1/meta")
        (plain.origin.path / "objects" / blob[:2] / blob[2:]).unlink()
        with pytest.raises(HostUnavailable, match="refs/pull/1"):
            await host.read_pull_request(REPO, ONE)


@asynchronous
async def test_a_single_ref_of_the_two_is_no_pull_request(plain: PlainEnvironment):
    plain.open(1)
    plain.origin.delete_ref("refs/pull/1/meta")
    async with plain.host() as host:
        assert await host.read_pull_request(REPO, ONE) is None


# Marking as merged


@asynchronous
async def test_marking_keeps_other_members_of_the_metadata(plain: PlainEnvironment):
    head = plain.open(1, labels=["a", {"b": 1.50}], title="Zoë\u2028")
    async with plain.host() as host:
        await host.mark_merged(REPO, ONE, head, LANDED)
    assert plain.meta(1) == plain.data[1] | {"state": "merged"}


@asynchronous
async def test_a_pull_request_that_was_closed_meanwhile_is_still_marked_as_merged(plain: PlainEnvironment):
    head = plain.open(1)
    plain.close(1)
    async with plain.host() as host:
        assert await host.mark_merged(REPO, ONE, head, LANDED)
    assert plain.meta(1)["state"] == "merged"


@asynchronous
async def test_a_pull_request_that_was_pushed_to_since_stays_open(plain: PlainEnvironment):
    head = plain.open(1)
    plain.push(1)
    async with plain.host() as host:
        assert not await host.mark_merged(REPO, ONE, head, LANDED)
    assert plain.meta(1)["state"] == "open"


@asynchronous
async def test_a_moved_head_branch_changes_nothing_before_its_pull_request_is_marked(plain: PlainEnvironment):
    head = plain.open(1)
    async with plain.host() as host:
        before = await host.refs(REPO)
        landed = plain.origin.commit("main", {"1.txt": "1"})
        plain.origin.set_ref("topic-1", landed)
        changed = dict(await host.refs(REPO)).items() - before.items()
        assert {host.pull_request_number_of(ref) for ref, _ in changed} == {None}
        assert await head_of(host) == head
        assert await host.mark_merged(REPO, ONE, head, landed)
        assert await head_of(host) == head
    assert plain.meta(1)["state"] == "merged"


@asynchronous
async def test_a_pull_request_that_was_updated_to_its_moved_branch_is_marked_as_merged(plain: PlainEnvironment):
    head = plain.open(1)
    landed = plain.origin.commit("main", {"1.txt": "1"})
    plain.origin.set_ref("refs/pull/1/head", landed)
    async with plain.host() as host:
        assert await host.mark_merged(REPO, ONE, head, landed)
    assert plain.meta(1)["state"] == "merged"


@asynchronous
async def test_a_deleted_pull_request_needs_no_mark(plain: PlainEnvironment):
    async with plain.host() as host:
        assert await host.mark_merged(REPO, ONE, LANDED, LANDED)
    assert "refs/pull/1/meta" not in plain.origin.refs()


@asynchronous
async def test_concurrent_marks_and_edits_lose_nothing(plain: PlainEnvironment):
    heads = [plain.open(number, note=number) for number in range(1, 4)]
    async with plain.host() as host:
        marks = [host.mark_merged(REPO, PullRequestNumber(n + 1), heads[n], LANDED) for n in range(3) for _ in range(3)]
        await asyncio.gather(*marks)
    assert [(plain.meta(n)["state"], plain.meta(n)["note"]) for n in (1, 2, 3)] == [("merged", n) for n in (1, 2, 3)]


@asynchronous
async def test_no_hook_of_the_repository_runs(plain: PlainEnvironment):
    head = plain.open(1)
    plain.origin.install_hook("reference-transaction", "exit 1")
    async with plain.host() as host:
        await host.mark_merged(REPO, ONE, head, LANDED)
    assert plain.meta(1)["state"] == "merged"


# The head branch


async def access_of(host: PlainHost) -> HeadBranchAccess:
    pull_request = await host.read_pull_request(REPO, ONE)
    assert pull_request
    assert not pull_request.is_merged_by_head
    return pull_request.head_branch_access


@asynchronous
async def test_a_head_branch_can_be_moved_only_while_it_is_at_the_head(plain: PlainEnvironment):
    plain.open(1)
    async with plain.host() as host:
        assert await access_of(host) is HeadBranchAccess.MOVABLE
        plain.origin.commit("topic-1", {"more.txt": "1"})
        assert await access_of(host) is HeadBranchAccess.GONE
        plain.origin.run("update-ref", "-d", "refs/heads/topic-1")
        assert await access_of(host) is HeadBranchAccess.GONE


@asynchronous
async def test_the_branch_that_head_names_and_the_base_are_not_moved(plain: PlainEnvironment):
    plain.open(1)
    async with plain.host() as host:
        (plain.origin.path / "HEAD").write_text("ref: refs/heads/topic-1\n")
        assert await access_of(host) is HeadBranchAccess.SHARED
        (plain.origin.path / "HEAD").write_text("ref: refs/heads/main\n")
        plain.open(1, base="topic-1")
        assert await access_of(host) is HeadBranchAccess.SHARED


@asynchronous
async def test_the_head_branch_of_another_open_pull_request_is_not_moved(plain: PlainEnvironment):
    """Wherever the head of the other one is: a later `mergeyard pr update` follows the branch."""
    plain.open(1)
    async with plain.host() as host:
        assert await access_of(host) is HeadBranchAccess.MOVABLE
        plain.open(2, branch="topic-1", base="release")
        assert await access_of(host) is HeadBranchAccess.SHARED
        plain.close(2)
        assert await access_of(host) is HeadBranchAccess.MOVABLE
        plain.open(2, branch="topic-1")
        assert await access_of(host) is HeadBranchAccess.SHARED
        plain.open(2)
        assert await access_of(host) is HeadBranchAccess.MOVABLE
        for other in ("", "refs/heads/topic-1", "topic-10", "Topic-1"):
            plain.open(2, branch=other)
            assert await access_of(host) is HeadBranchAccess.MOVABLE


@asynchronous
async def test_a_pull_request_that_cannot_be_read_yet_is_noticed_later(plain: PlainEnvironment):
    plain.open(1)
    head = plain.open(2, branch="topic-1")
    plain.write_meta(3, "no metadata")
    plain.origin.delete_ref("refs/pull/2/head")
    async with plain.host() as host:
        assert await access_of(host) is HeadBranchAccess.MOVABLE
        plain.origin.set_ref("refs/pull/2/head", head)
        assert await access_of(host) is HeadBranchAccess.SHARED


@asynchronous
async def test_a_merge_neither_moves_nor_deletes_the_head_branch_of_another_open_pull_request(tmp_path: Path):
    async with a_scenario(tmp_path, Config(merge_method=MergeMethod.SQUASH, delete_head_branches=True)) as scenario:
        scenario.open(1)
        head = scenario.origin.tip("feature1")
        scenario.set_pull_request(2, head=head, branch="feature1", base="release")
        await scenario.submit(1)
        await scenario.passes(1)
        assert scenario.pull_request_meta(1)["state"] == "merged"
        assert scenario.origin.tip("feature1") == head


@asynchronous
async def test_concurrent_reads_share_a_list_and_known_metadata_is_not_read_again(plain: PlainEnvironment):
    for number in (1, 2, 3):
        plain.open(number, branch="shared")
    lists = list[Mapping[PullRequestNumber, Sha]]()

    async def list_metadata() -> Mapping[PullRequestNumber, Sha]:
        await asyncio.sleep(0)
        lists.append({PullRequestNumber(n): plain.origin.tip(f"refs/pull/{n}/meta") for n in (3, 2, 1)})
        return lists[-1]

    branches, reader = HeadBranches(list_metadata), await ObjectReader.start(plain.origin.path)
    found = await asyncio.gather(*(branches.find_open(reader, "shared") for _ in range(50)))
    assert (found, len(lists)) == ([{1, 2, 3}] * 50, 2), "one that began before most calls, and one after all"
    blob = lists[-1][TWO]
    (plain.origin.path / "objects" / blob[:2] / blob[2:]).unlink()
    plain.close(1)
    assert await branches.find_open(reader, "shared") == {2, 3}
    await reader.close()


@asynchronous
async def test_a_list_of_head_branches_that_fails_is_read_again(plain: PlainEnvironment):
    plain.open(1)
    failure, now = HostUnavailable("the disk is full"), {ONE: plain.origin.tip("refs/pull/1/meta")}
    results: list[Mapping[PullRequestNumber, Sha] | HostUnavailable] = [{}, failure, now]

    async def list_metadata() -> Mapping[PullRequestNumber, Sha]:
        await asyncio.sleep(0)
        result = results.pop(0)
        if isinstance(result, HostUnavailable):
            raise result
        return result

    branches, reader = HeadBranches(list_metadata), await ObjectReader.start(plain.origin.path)
    calls = (branches.find_open(reader, "topic-1") for _ in range(3))
    assert await asyncio.gather(*calls, return_exceptions=True) == [set(), failure, {1}]
    await reader.close()


@pytest.mark.parametrize("skipped", ["with_requirements", "with_head_branch"])
@asynchronous
async def test_a_head_branch_that_does_not_matter_is_not_read(plain: PlainEnvironment, skipped: str):
    plain.open(1)
    plain.origin.run("update-ref", "-d", "refs/heads/topic-1")
    async with plain.host() as host:
        pull_request = await host.read_pull_request(REPO, ONE, **{skipped: False})
        assert pull_request
        assert pull_request.head_branch_access is HeadBranchAccess.MOVABLE


@pytest.mark.parametrize(
    "branch",
    ["", "topic-1\ninfo HEAD", "topic-1~0", "topic-1^{commit}", "topic-1@{0}", "x-g{head}", "topic-1 x", "topic-1\0"],
)
@asynchronous
async def test_a_name_that_git_reads_as_something_else_is_no_head_branch(plain: PlainEnvironment, branch: str):
    head = plain.open(1)
    plain.write_meta(1, json.dumps(plain.data[1] | {"branch": branch.replace("{head}", head)}))
    async with plain.host() as host:
        assert await access_of(host) is HeadBranchAccess.GONE
        assert await head_of(host) == head


# The text


@pytest.mark.parametrize(
    ("author", "name", "address"),
    [
        ("Ada Lovelace <ada@example.org>", "Ada Lovelace", "ada@example.org"),
        ("ada", "ada", ""),
        ("<ada@example.org>", "<ada@example.org>", ""),
        ("Ada <ada> <x>", "Ada <ada> <x>", ""),
    ],
)
@asynchronous
async def test_the_author_of_the_metadata_can_have_an_address(
    plain: PlainEnvironment, author: str, name: str, address: str
):
    plain.open(1, title="Add a page", author=author)
    async with plain.host() as host:
        expected = PullRequestText(title="Add a page", author_name=name, author_email=address)
        assert await host.read_text(REPO, ONE) == expected
        assert await host.own_address(REPO) is None


# Refs and names


@asynchronous
async def test_test_branches_and_unrelated_refs_are_ignored(plain: PlainEnvironment):
    plain.open(1)
    async with plain.host() as host:
        before = await host.refs(REPO)
        for ref in ("refs/heads/mergeyard/pr-1/x", "refs/pull/1/merge", "refs/pull/x/head", "refs/tags/v1"):
            plain.origin.set_ref(ref, plain.origin.tip("main"))
        assert await host.refs(REPO) == before
        plain.origin.set_ref("refs/heads/mergeyard-docs", plain.origin.tip("main"))
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
async def test_the_number_is_read_off_the_ref(plain: PlainEnvironment, ref: str, number: int | None):
    async with plain.host() as host:
        assert host.pull_request_number_of(ref) == number


@pytest.mark.parametrize("name", ["..", ".", "", "-x", "a/b", "../x", "a\0b", "a\n", "x" * 101, "ä"])
@asynchronous
async def test_no_name_leads_outside_the_root(plain: PlainEnvironment, name: str):
    async with plain.host() as host:
        for repo in (Repo("git.local", name, "app"), Repo("git.local", "acme", name)):
            assert not await host.has_repository(repo)
            with pytest.raises(HostUnavailable):
                await host.remote(repo)
            with pytest.raises(HostUnavailable):
                await host.read_pull_request(repo, ONE)


@asynchronous
async def test_names_are_compared_exactly(plain: PlainEnvironment):
    async with plain.host() as host:
        shouted = replace(REPO, name="APP")
        assert host.canonical_repo(shouted) == shouted
        assert not await host.has_repository(shouted)


@asynchronous
async def test_the_remote_is_the_folder_itself_and_there_are_no_pages(plain: PlainEnvironment):
    async with plain.host() as host:
        assert (await host.remote(REPO)).url == str(plain.origin.path)
        assert host.pull_request_url(REPO, ONE) is None
        assert host.head_ref_pattern == "refs/pull/*/head"
        configs = [Config(merge_method=method, landing=landing) for method in MergeMethod for landing in LandingMethod]
        assert not any(map(host.unsupported_reason, configs))
        assert not host.reports_mergeability
        assert await host.required_statuses(REPO, "main") == ()


# Lists


@asynchronous
async def test_an_unreadable_pull_request_does_not_hide_the_others_of_a_list(plain: PlainEnvironment):
    for number in (1, 2, 3):
        plain.open(number)
    plain.write_meta(2, "no metadata")
    plain.origin.run("update-ref", "-d", "refs/pull/3/head")
    async with plain.host() as host:
        assert [one.number for one in await host.open_pull_requests(REPO, "main")] == [ONE]


@asynchronous
async def test_a_list_is_read_although_the_reader_was_killed(plain: PlainEnvironment):
    plain.open(1)
    async with plain.host() as host:
        await head_of(host)
        (reader,) = readers_of(plain.origin.path)
        os.kill(reader, signal.SIGKILL)
        assert [one.number for one in await host.open_pull_requests(REPO, "main")] == [ONE]


@pytest.mark.long
@asynchronous
async def test_a_list_has_the_newest_hundred_pull_requests_of_many(plain: PlainEnvironment):
    head = plain.open(1)
    closed = plain.origin.blob(json.dumps(DATA | {"state": "closed"}))
    opened = plain.origin.blob(json.dumps(DATA | {"title": "long " * 100}))
    for number in range(2, 254):
        plain.origin.set_ref(f"refs/pull/{number}/head", head)
        plain.origin.set_ref(f"refs/pull/{number}/meta", opened if number % 3 else closed)
    async with plain.host() as host:
        listed = await host.open_pull_requests(REPO, "main")
    assert [one.number for one in listed] == [number for number in range(253, 103, -1) if number % 3]
    assert {len(one.title) for one in listed} == {300}
