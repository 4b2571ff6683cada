"""What odd repositories hold lands byte for byte, with each merge method: nothing is converted or left out."""

from pathlib import Path

import pytest
from msgspec import Struct

from mergeyard.domain.config import Config, MergeMethod
from tests.support.asynchronous import asynchronous
from tests.support.repositories import Executable, Files, Origin, Submodule, Symlink
from tests.support.scenario import CONFIG, SECOND, Scenario, a_scenario

MERGED = "merged: merged_by_queue"
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize 12345\n"
MODULES = '[submodule "lib"]\n\tpath = lib\n\turl = ../lib.git\n'

every_method = pytest.mark.parametrize("method", list(MergeMethod))


class OddFiles(Struct, frozen=True):
    before: Files
    """On the target branch."""
    change: Files
    """In the pull request."""


KINDS = {
    "submodules": OddFiles(
        {".gitmodules": MODULES, "lib": Submodule("1" * 40), "gone": Submodule("2" * 40)},
        {"lib": Submodule("3" * 40), "gone": None, "new/deep": Submodule("4" * 40)},
    ),
    "LFS pointers": OddFiles(
        {".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n", "old.bin": POINTER.format("a" * 64)},
        {"old.bin": POINTER.format("b" * 64), "new.bin": POINTER.format("c" * 64), "raw.bin": bytes(range(256))},
    ),
    "CRLF": OddFiles(
        {".gitattributes": "* text=auto eol=crlf\n*.sh eol=lf\n", "dos.txt": "1\r\n2\r\n", "mixed.txt": "1\r\n2\n3\r"},
        {"dos.txt": "1\r\n3\r\n", "mixed.txt": "1\n2\r\n3\r", "new.sh": Executable("exit 0\r\n"), "unix.txt": "1\n"},
    ),
    "UTF-16": OddFiles(
        {".gitattributes": "*.txt working-tree-encoding=UTF-16 text\n", "a.txt": "one\n".encode("utf-16")},
        {"a.txt": "one\ntwo\n".encode("utf-16-le"), "b.txt": "three\r\n".encode("utf-16-be"), "c.txt": b"\xff\xfe\0"},
    ),
    "names that are not UTF-8": OddFiles(
        {"caf\udce9.txt": "1\n", "\udcff\udcfe/inside": "1\n"},
        {"caf\udce9.txt": "2\n", "\udcff\udcfe/inside": None, "\udcfe": Symlink("caf\udce9.txt"), "caf\xe9.txt": "3\n"},
    ),
    "case twins": OddFiles(
        {"README": "upper\n", "readme": "lower\n", "Lib/a": "1\n", "lib/A": "2\n"},
        {"readme": "lower, changed\n", "ReadMe": "third\n", "LIB/a": "3\n", "lib/A": None},
    ),
}  # fmt: skip


def read_raw(origin: Origin, place: str) -> bytes:
    """The modes, contents and names of all files, in the bytes of git."""
    return origin.run("ls-tree", "-r", "-z", "--full-tree", origin.tip(place))


async def land(scenario: Scenario, number: int) -> None:
    await scenario.advance_time(2 * SECOND)
    await scenario.submit(number)
    assert await scenario.state(number) == "testing: waiting_for_checks"
    await scenario.passes(number)
    assert await scenario.state(number) == MERGED


@every_method
@pytest.mark.parametrize("kind", KINDS)
@asynchronous
async def test_odd_files_land_byte_for_byte(tmp_path: Path, kind: str, method: MergeMethod):
    """Onto a target branch that moved meanwhile, so that git has to merge, and not only to move a branch."""
    odd = KINDS[kind]
    async with a_scenario(tmp_path, Config(merge_method=method)) as scenario:
        origin = scenario.origin
        base = origin.commit("main", odd.before)
        scenario.open(1, base=base, files=odd.change)
        origin.branch("expected", base="feature1", files={"meanwhile": "1\n"})
        origin.commit("main", {"meanwhile": "1\n"})
        await land(scenario, 1)
        assert read_raw(origin, "main") == read_raw(origin, "expected")


@every_method
@asynchronous
async def test_an_octopus_merge_lands(tmp_path: Path, method: MergeMethod):
    """As the author's own commit with the method that keeps commits, and with its whole content by every method."""
    async with a_scenario(tmp_path, Config(merge_method=method)) as scenario:
        origin = scenario.origin
        base = origin.tip("main")
        arms = [origin.branch(f"arm{each}", base=base, files={f"arm{each}": f"{each}\r\n"}) for each in range(4)]
        files = {f"arm{each}": f"{each}\r\n" for each in range(4)}
        merged = origin.branch("expected", base=base, files=files)
        parents = [f"-p{arm}" for arm in arms]
        octopus = origin.run("commit-tree", *parents, "-m", "Eight arms", origin.tree(merged)).decode().strip()
        origin.set_ref("feature1", octopus)
        scenario.set_pull_request(1, head=origin.tip("feature1"), branch="feature1")
        origin.commit("expected", {"meanwhile": "1\n"})
        origin.commit("main", {"meanwhile": "1\n"})
        await land(scenario, 1)
        assert read_raw(origin, "main") == read_raw(origin, "expected")
        if method is MergeMethod.MERGE_COMMIT:
            parents_of_head = origin.run("log", "-1", "--format=%P", "main^2").decode().split()
            assert parents_of_head == arms


@every_method
@asynchronous
async def test_an_unrelated_history_is_not_mergeable_and_changes_nothing(tmp_path: Path, method: MergeMethod):
    """As `git merge` does: both sides can hold the same paths, and neither is newer."""
    async with a_scenario(tmp_path, Config(merge_method=method)) as scenario:
        before = scenario.origin.commit("main", {"a": "ours\n"})
        scenario.origin.commit("feature1", {"b": "theirs\n", ".mergeyard.toml": CONFIG})
        scenario.set_pull_request(1, head=scenario.origin.tip("feature1"), branch="feature1")
        await scenario.submit(1)
        assert await scenario.state(1) == "not_ready: not_mergeable"
        assert scenario.origin.tip("main") == before


@every_method
@asynchronous
async def test_a_history_that_its_author_joined_lands(tmp_path: Path, method: MergeMethod):
    """As a subtree: the unrelated commits have a root of their own."""
    async with a_scenario(tmp_path, Config(merge_method=method)) as scenario:
        origin = scenario.origin
        origin.commit("other", {"vendor/a": "1\r\n", "vendor/b": b"\0\xff"})
        origin.branch("feature1", base="main", files={"own": "1\n"})
        files: Files = {"vendor/a": "1\r\n", "vendor/b": b"\0\xff"}
        origin.commit("feature1", files, merging="other", message="Join")
        scenario.set_pull_request(1, head=origin.tip("feature1"), branch="feature1")
        origin.branch("expected", base="feature1", files={"meanwhile": "1\n"})
        origin.commit("main", {"meanwhile": "1\n"})
        await land(scenario, 1)
        assert read_raw(origin, "main") == read_raw(origin, "expected")


@asynchronous
async def test_all_kinds_of_odd_files_land_in_one_batch(tmp_path: Path):
    async with a_scenario(tmp_path, Config(batch=True, batching_min_size=len(KINDS))) as scenario:
        origin = scenario.origin
        for folder, odd in enumerate(KINDS.values()):
            origin.commit("main", {f"{folder}/{path}": content for path, content in odd.before.items()})
        base = origin.tip("main")
        origin.branch("expected", base=base)
        for number, odd in enumerate(KINDS.values(), 1):
            change: Files = {f"{number - 1}/{path}": content for path, content in odd.change.items()}
            scenario.open(number, base=base, files=change)
            origin.commit("expected", change)
        numbers = range(1, len(KINDS) + 1)
        await scenario.advance_time(2 * SECOND)
        await scenario.submit(*numbers)
        await scenario.report_all_runs()
        assert [await scenario.state(number) for number in numbers] == [MERGED] * len(KINDS)
        assert read_raw(origin, "main") == read_raw(origin, "expected")
