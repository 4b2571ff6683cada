"""A git process cannot take more memory and processor time than it may, and repositories share the slots fairly."""

import asyncio
from pathlib import Path
from signal import SIGKILL, SIGTERM

import pytest

from mergeyard.adapters.git_cli import GitCli
from mergeyard.adapters.git_cli.contents import MAX_PATHS, count_paths
from mergeyard.adapters.git_cli.limits import (
    MAX_SHARE_BYTES,
    MIB,
    MIN_SHARE_BYTES,
    SLOTS,
    FairSlots,
    Limits,
    Work,
    choose_limits,
    read_usable_memory,
)
from mergeyard.adapters.git_cli.process import GitRunner
from mergeyard.ports.git import Conflict, Identity, LimitExceededError, Mirror, Remote, TooManyPathsError
from tests.support.asynchronous import asynchronous
from tests.support.repositories import Origin

MAX_RENAMES = 1000
SMALL = Limits(memory_bytes=48 * MIB, repository_memory_bytes=96 * MIB, cpu_s=1)


@pytest.fixture
def small_mirror(tmp_path: Path, origin: Origin) -> Mirror:
    git = GitCli(tmp_path / "small", Identity("Mergeyard", "queue@example.org"), SMALL)
    return asyncio.run(git.mirror("git.local/owner/small", Remote(origin.url)))


async def fetch_bomb(mirror: Mirror, origin: Origin, *, levels: int = 10) -> None:
    """The branch `bomb` deletes a file that the target branch changes."""
    origin.branch("bomb", base="main")
    origin.git_bomb("bomb", levels=levels, removing="b.txt")
    origin.commit("main", {"b.txt": "1\n2\n3\n4\n"})
    await mirror.fetch(["refs/heads/*"])


def as_git(script: str) -> tuple[str, ...]:
    """A git command that runs this script, in which `$PPID` is git."""
    return ("-c", f"alias.script=!{script}", "script")


# Memory and time.


@pytest.mark.parametrize("work", [Work.LOOKUP, Work.CONTENTS])
@asynchronous
async def test_every_git_process_has_the_limits_of_its_kind_of_work(work: Work):
    wait_for_memory = f"until grep -q 'Max data size *{SMALL.memory_of(work)} ' /proc/$PPID/limits; do :; done"
    wait_for_time = "until grep -q 'Max cpu time *1 ' /proc/$PPID/limits; do :; done"
    result = await GitRunner(SMALL).run(*as_git(f"{wait_for_memory}; {wait_for_time}; echo limited"), work=work)
    assert result.stdout == b"limited\n"


@asynchronous
async def test_a_transfer_may_take_any_processor_time():
    memory = SMALL.repository_memory_bytes
    wait = f"until grep -q 'Max data size *{memory} ' /proc/$PPID/limits; do :; done; cat /proc/$PPID/limits"
    result = await GitRunner(SMALL).run(*as_git(wait), work=Work.TRANSFER)
    assert b"Max cpu time              unlimited" in result.stdout


@asynchronous
async def test_a_merge_that_needs_too_much_memory_is_ended(small_mirror: Mirror, origin: Origin):
    await fetch_bomb(small_mirror, origin)
    with pytest.raises(LimitExceededError, match="git merge-tree needs more memory than its limit of 48 MiB"):
        await small_mirror.merge(origin.tip("main"), origin.tip("bomb"))


@asynchronous
async def test_the_mirror_counts_as_undamaged_after_git_had_too_little_memory(small_mirror: Mirror, origin: Origin):
    await fetch_bomb(small_mirror, origin)
    with pytest.raises(LimitExceededError):
        await small_mirror.changed_paths(origin.tip("main"), origin.tip("bomb"))
    origin.commit("main", {"c.txt": "1"})
    await small_mirror.fetch(["refs/heads/main"])
    assert await small_mirror.tree(origin.tip("main")) == origin.tree("main")


@asynchronous
async def test_a_comparison_that_needs_too_much_processor_time_is_ended(small_mirror: Mirror, origin: Origin):
    """Nothing matches the glob, so that git takes time but no memory."""
    await fetch_bomb(small_mirror, origin)
    with pytest.raises(LimitExceededError, match="git diff-tree needs more than 1 seconds of processor time"):
        await small_mirror.changed_paths_matching(origin.tip("main"), origin.tip("bomb"), ["**/Dockerfile"])


@asynchronous
async def test_notes_with_billions_of_files_by_another_program_are_left_out(small_mirror: Mirror, origin: Origin):
    await fetch_bomb(small_mirror, origin)
    commit = origin.tip("main")
    notes = await small_mirror.add_notes(origin.tip("bomb"), {commit: b"note"})
    path = f"{commit[:2]}/{commit[2:]}"
    assert await small_mirror.read_file(notes, path, max_bytes=10) == b"note"
    assert (await small_mirror.read_commit(notes)).parents == (origin.tip("bomb"),)


@asynchronous
async def test_a_git_that_is_killed_has_exceeded_a_limit():
    with pytest.raises(LimitExceededError, match="killed by signal 9"):
        await GitRunner().run(*as_git(f"kill -{SIGKILL.value} $PPID"))


@asynchronous
async def test_a_git_that_is_stopped_with_the_server_has_exceeded_no_limit():
    result = await GitRunner().run(*as_git(f"kill -{SIGTERM.value} $PPID"))
    assert result.exit_code == -SIGTERM


@asynchronous
async def test_words_of_the_git_host_about_its_memory_are_no_limit_of_ours():
    result = await GitRunner().run(*as_git("echo 'remote: fatal: Out of memory, malloc failed' >&2; exit 1"))
    assert result.exit_code == 1


@asynchronous
async def test_a_merge_that_does_not_finish_in_time_has_exceeded_a_limit():
    with pytest.raises(LimitExceededError, match=r"did not finish within 0\.1 seconds"):
        await GitRunner().run(*as_git("exec sleep 1000"), work=Work.CONTENTS, timeout_s=0.1)


def test_the_default_is_a_quarter_of_the_memory_within_bounds():
    quarter = read_usable_memory() // 4
    assert choose_limits().memory_bytes == min(max(quarter, MIN_SHARE_BYTES), MAX_SHARE_BYTES)
    assert choose_limits(300).memory_bytes == 300 * MIB


def test_what_grows_with_the_repository_may_take_half_of_the_memory_and_never_less_than_two_merges():
    assert choose_limits().repository_memory_bytes >= read_usable_memory() // 2
    assert choose_limits(1_000_000).repository_memory_bytes == 2_000_000 * MIB


def test_the_memory_of_a_container_or_a_service_counts(tmp_path: Path):
    own, root = tmp_path / "cgroup", tmp_path / "root"
    service = root / "system.slice" / "mergeyard.service"
    service.mkdir(parents=True)
    own.write_text("0::/system.slice/mergeyard.service\n")
    (service / "memory.max").write_text("max\n")
    (root / "system.slice" / "memory.max").write_text(f"{700 * MIB}\n")
    assert read_usable_memory(root, own) == 700 * MIB


@asynchronous
async def test_a_file_can_be_larger_than_the_memory_of_a_fetch(small_mirror: Mirror, origin: Origin):
    origin.commit("main", {"large": "x" * (SMALL.repository_memory_bytes + MIB)})
    await small_mirror.fetch(["refs/heads/main"])
    assert await small_mirror.tree(origin.tip("main")) == origin.tree("main")


# Trees that contain each other.


@asynchronous
async def test_a_commit_with_billions_of_paths_is_found_before_git_visits_them(mirror: Mirror, origin: Origin):
    origin.branch("bomb", base="main")
    origin.git_bomb("bomb", levels=200)
    await mirror.fetch(["refs/heads/*"])
    with pytest.raises(TooManyPathsError, match="more than 2,000,000 paths"):
        await mirror.tree_problems(origin.tip("bomb"), without=origin.tip("main"))


@asynchronous
async def test_folders_with_equal_contents_are_allowed(mirror: Mirror, origin: Origin):
    origin.branch("copies", base="main")
    origin.git_bomb("copies", levels=4)
    await mirror.fetch(["refs/heads/*"])
    assert await mirror.tree_problems(origin.tip("copies"), without=origin.tip("main")) == ()


def test_paths_are_counted_through_all_folders(origin: Origin):
    origin.branch("copies", base="main")
    origin.git_bomb("copies", levels=3, removing="b.txt")
    trees = origin.run("rev-list", "--objects", "--no-object-names", "--filter=object:type=tree", "copies")
    batch = origin.run("cat-file", "--batch", stdin=b"".join(trees.splitlines(keepends=True)[1:]))
    assert count_paths(batch) == len(origin.files("copies")) == 1000 + len(("a.txt", "lib/c.txt"))
    assert MAX_PATHS > 1000


# What our merges look for.


@asynchronous
async def test_a_file_in_a_folder_that_was_renamed_stays_where_it_was_added(mirror: Mirror, origin: Origin):
    origin.branch("feature", base="main", files={"lib/new.txt": "new\n"})
    origin.rename("main", "lib/c.txt", "src/c.txt")
    await mirror.fetch(["refs/heads/*"])
    tree = await mirror.merge(origin.tip("main"), origin.tip("feature"))
    assert origin_files(mirror, tree) >= {"lib/new.txt", "src/c.txt"}


def origin_files(mirror: Mirror, tree: object) -> set[str]:
    folder = Origin(mirror.repository.path)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownArgumentType]
    return set(folder.run("ls-tree", "-r", "--name-only", str(tree)).decode().split())


@asynchronous
async def test_a_file_that_is_renamed_and_changed_is_still_found(mirror: Mirror, origin: Origin):
    origin.commit("main", {"long.txt": "".join(f"{line}\n" for line in range(100))})
    origin.branch("feature", base="main")
    origin.rename("feature", "long.txt", "other/name.txt")
    origin.commit("main", {"long.txt": "".join(f"{line}\n" for line in range(101))})
    await mirror.fetch(["refs/heads/*"])
    tree = await mirror.merge(origin.tip("main"), origin.tip("feature"))
    assert "other/name.txt" in origin_files(mirror, tree)


@asynchronous
async def test_more_renamed_and_changed_files_than_the_limit_are_conflicts(mirror: Mirror, origin: Origin):
    """Git would compare each of them with each other one, and merge them after a while."""
    names = [str(each) for each in range(MAX_RENAMES + 1)]
    lines = {name: [f"{name} {line}\n" for line in range(8)] for name in names}
    origin.commit("main", {f"old/{name}": "".join(lines[name]) for name in names})
    origin.branch("feature", base="main")
    renamed = {f"new/{name}-moved": "".join([*lines[name], "at the end\n"]) for name in names}
    origin.commit("feature", {f"old/{name}": None for name in names} | renamed)
    origin.commit("main", {f"old/{name}": "".join(["at the beginning\n", *lines[name]]) for name in names})
    await mirror.fetch(["refs/heads/*"])
    assert isinstance(await mirror.merge(origin.tip("main"), origin.tip("feature")), Conflict)


# Slots.


async def take(slots: FairSlots, repository: str, release: asyncio.Event, taken: list[str]) -> None:
    async with slots.slot(repository):
        taken.append(repository)
        await release.wait()


async def let_others_run() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


@asynchronous
async def test_a_repository_with_slow_work_leaves_slots_for_every_other():
    slots, release, taken = FairSlots(4), asyncio.Event(), list[str]()
    slow = [asyncio.create_task(take(slots, "slow", release, taken)) for _ in range(10)]
    await let_others_run()
    assert taken == ["slow"] * 2
    others = [asyncio.create_task(take(slots, name, release, taken)) for name in ("second", "third")]
    await let_others_run()
    assert taken == ["slow", "slow", "second", "third"]
    release.set()
    await asyncio.gather(*slow, *others)
    assert taken.count("slow") == 10


@asynchronous
async def test_a_cancelled_wait_for_a_slot_takes_none():
    slots, release, taken = FairSlots(1), asyncio.Event(), list[str]()
    first = asyncio.create_task(take(slots, "a", release, taken))
    await let_others_run()
    waiting = [asyncio.create_task(take(slots, name, release, taken)) for name in ("a", "b")]
    await let_others_run()
    release.set()
    first.cancel()
    waiting[0].cancel()
    await asyncio.wait({first, *waiting})
    assert taken == ["a", "b"]
    async with slots.slot("c"):
        pass


@asynchronous
async def test_a_slot_that_is_given_to_a_caller_who_leaves_goes_to_the_next():
    slots, taken = FairSlots(1), list[str]()
    release, never = asyncio.Event(), asyncio.Event()
    first = asyncio.create_task(take(slots, "a", release, taken))
    await let_others_run()
    second = asyncio.create_task(take(slots, "b", never, taken))
    await let_others_run()
    release.set()
    await first
    second.cancel()  # it has the slot, but has not run since
    await asyncio.wait({second})
    async with slots.slot("c"):
        pass


@asynchronous
async def test_slow_merges_of_a_repository_stop_neither_its_own_lookups_nor_merges_of_others():
    runner = GitRunner()
    slow = [
        asyncio.create_task(runner.run(*as_git("exec sleep 1000"), repository="slow", work=Work.CONTENTS))
        for _ in range(3 * SLOTS[Work.CONTENTS])
    ]
    try:
        await let_others_run()
        assert (await runner.run("version", repository="slow")).exit_code == 0
        assert (await runner.run("version", repository="other", work=Work.CONTENTS)).exit_code == 0
        assert (await runner.run("version", repository="slow", work=Work.TRANSFER)).exit_code == 0
    finally:
        for task in slow:
            task.cancel()
        await asyncio.wait(slow)
