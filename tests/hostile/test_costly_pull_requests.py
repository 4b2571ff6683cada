"""A pull request that takes git too much memory or time fails. It stops neither the queue nor others, and a restart
does not begin again.

A "git bomb" of some ten tree objects describes up to 10^10 files. If it also deletes a file that the target branch
changed, git looks for that file in all of them.
"""

from collections.abc import Sequence
from pathlib import Path

from structlog.typing import EventDict

from mergeyard.adapters.git_cli.limits import MIB, Limits
from mergeyard.domain.config import Config, MergeMethod
from mergeyard.domain.ids import PullRequestNumber, QueueKey, Repo
from mergeyard.service.previews import MergePreview
from tests.support.asynchronous import asynchronous
from tests.support.log_capture import capture_warnings
from tests.support.repositories import Origin
from tests.support.scenario import CONFIG, KEY, MINUTE, Scenario, ScenarioSetup, a_scenario

BOMB_LEVELS = 10
ALLOWED_LEVELS = 6
"""Few enough to be no bomb, but too many for a merge with `SETUP`."""
BOMB_CONTENT = "x"
"""Of every file in a bomb."""
LARGE_BYTES = 64 * MIB
SETUP = ScenarioSetup(git_limits=Limits(memory_bytes=48 * MIB, repository_memory_bytes=96 * MIB))
REBASE = Config(merge_method=MergeMethod.REBASE)


def open_bomb(scenario: Scenario, number: int, *, levels: int = BOMB_LEVELS) -> None:
    """A pull request that also deletes the file README."""
    scenario.origin.branch(f"feature{number}", base="main")
    head = scenario.origin.git_bomb(f"feature{number}", levels=levels, removing="README")
    scenario.set_pull_request(number, head=head, branch=f"feature{number}")


def change_readme(scenario: Scenario) -> None:
    scenario.origin.commit("main", {"README": "hello\nand more\n"})


def attempts(log: Sequence[EventDict]) -> int:
    return sum(entry["event"] == "git_limit_exceeded" for entry in log)


def outages(log: Sequence[EventDict]) -> int:
    return sum(entry["event"] == "git_host_unavailable" for entry in log)


def open_with_large_files(scenario: Scenario, number: int) -> None:
    """A pull request of half a mebibyte that git cannot fetch with `SETUP`."""
    scenario.origin.branch(f"feature{number}", base="main")
    head = scenario.origin.delta_bomb(f"feature{number}", size=LARGE_BYTES)
    scenario.set_pull_request(number, head=head, branch=f"feature{number}")


async def preview(scenario: Scenario, number: int, key: QueueKey = KEY) -> MergePreview:
    return await scenario.service.previews.preview_merge(key, PullRequestNumber(number))


@asynchronous
async def test_a_git_bomb_fails_after_two_attempts_and_others_merge(tmp_path: Path):
    with capture_warnings() as log:
        async with a_scenario(tmp_path, setup=SETUP) as scenario:
            open_bomb(scenario, 1)
            scenario.open(2)
            change_readme(scenario)
            await scenario.advance_time(MINUTE)
            await scenario.submit(1)
            assert await scenario.state(1) == "not_ready: mergeability_unknown"
            await scenario.submit(2)
            await scenario.advance_time(MINUTE)
            assert await scenario.state(1) == "failed: pr_too_large"
            assert "needs more memory than its limit of 48 MiB" in (await scenario.view(1)).reason.message
            await scenario.passes(2)
            assert await scenario.state(2) == "merged: merged_by_queue"
            await scenario.advance_time(60 * MINUTE)
    assert (attempts(log), outages(log)) == (2, 0)


@asynchronous
async def test_a_git_bomb_that_a_maintainer_forces_fails_after_two_attempts(tmp_path: Path):
    """The first one is that of the request itself."""
    with capture_warnings() as log:
        async with a_scenario(tmp_path, setup=SETUP) as scenario:
            open_bomb(scenario, 1)
            change_readme(scenario)
            await scenario.advance_time(MINUTE)
            await scenario.submit(1, forced=True)
            assert await scenario.state(1) == "failed: pr_too_large"
    assert (attempts(log), outages(log)) == (2, 0)


@asynchronous
async def test_a_restart_after_the_first_attempt_leaves_one_more(tmp_path: Path):
    with capture_warnings() as log:
        async with a_scenario(tmp_path, setup=SETUP) as scenario:
            open_bomb(scenario, 1)
            change_readme(scenario)
            await scenario.advance_time(MINUTE)
            await scenario.submit(1)
            assert attempts(log) == 1
            await scenario.restart()
            await scenario.advance_time(MINUTE)
            assert await scenario.state(1) == "failed: pr_too_large"
            await scenario.restart()
            await scenario.advance_time(MINUTE)
    assert (attempts(log), outages(log)) == (2, 0)


@asynchronous
async def test_a_bomb_that_merges_at_once_is_refused_before_it_harms_the_pull_request_behind_it(tmp_path: Path):
    """Alone it costs nothing. The second one changes the file that the first one deletes."""
    async with a_scenario(tmp_path, setup=SETUP) as scenario:
        open_bomb(scenario, 1)
        scenario.open(2, files={"README": "hello\nfrom 2\n"})
        await scenario.submit(1, 2)
        assert await scenario.state(1) == "failed: pr_too_large"
        assert "more than 2,000,000 paths" in (await scenario.view(1)).reason.message
        await scenario.passes(2)
        assert await scenario.state(2) == "merged: merged_by_queue"


@asynchronous
async def test_a_pull_request_is_not_blamed_for_folders_of_one_ahead_of_it(tmp_path: Path):
    async with a_scenario(tmp_path, setup=SETUP) as scenario:
        open_bomb(scenario, 1, levels=ALLOWED_LEVELS)
        scenario.open(2, files={"README": "hello\nfrom 2\n"})
        await scenario.submit(1, 2)
        assert await scenario.state(1) == "testing: waiting_for_checks"
        assert await scenario.state(2) == "pending: conflicts_with_pr_ahead"
        await scenario.cancel(1)
        await scenario.passes(2)
        assert await scenario.state(2) == "merged: merged_by_queue"


@asynchronous
async def test_a_build_that_exceeds_a_limit_fails_its_pull_request_after_two_attempts(tmp_path: Path):
    """The target branch changes after the pull request was admitted, so that only its build meets the change."""
    with capture_warnings() as log:
        async with a_scenario(tmp_path, Config(concurrency=1), SETUP) as scenario:
            scenario.open(2)
            open_bomb(scenario, 1, levels=ALLOWED_LEVELS)
            await scenario.submit(2, 1)
            change_readme(scenario)
            await scenario.advance_time(MINUTE)
            await scenario.passes(2)
            await scenario.advance_time(MINUTE)
            assert await scenario.state(1) == "failed: pr_too_large"
    assert (attempts(log), outages(log)) == (2, 0)


@asynchronous
async def test_a_preview_of_a_bomb_is_refused_after_one_attempt(tmp_path: Path):
    async with a_scenario(tmp_path, REBASE, SETUP) as scenario:
        open_bomb(scenario, 1)
        change_readme(scenario)
        await scenario.advance_time(MINUTE)
        with capture_warnings() as log:
            for _ in range(3):
                found = await preview(scenario, 1)
                assert "The queue would refuse it: git merge-tree needs more memory" in found.explanation
                assert found.messages == ()
                await scenario.advance_time(MINUTE)
        assert attempts(log) == 1


@asynchronous
async def test_a_preview_that_takes_long_delays_none_of_another_repository(tmp_path: Path):
    async with a_scenario(tmp_path, setup=SETUP) as scenario:
        other = QueueKey(Repo(KEY.repo.host, "acme", "other"), "main")
        origin = scenario.origin
        scenario.origin = Origin.create(tmp_path / "repos" / "acme" / "other.git")
        scenario.origin.commit("main", {".mergeyard.toml": CONFIG})
        scenario.open(1)
        await scenario.create_queue(key=other)
        await scenario.wait_until_idle()
        locks = vars(scenario.service.previews)["_locks"]
        async with locks[KEY.repo]:
            assert (await preview(scenario, 1, other)).messages
        scenario.origin = origin


@asynchronous
async def test_a_pull_request_that_git_cannot_fetch_within_its_limits_fails_after_two_attempts(tmp_path: Path):
    with capture_warnings() as log:
        async with a_scenario(tmp_path, setup=SETUP) as scenario:
            open_with_large_files(scenario, 1)
            scenario.open(2)
            await scenario.submit(1, 2)
            await scenario.advance_time(MINUTE)
            assert await scenario.state(1) == "failed: pr_too_large"
            assert "needs more memory than its limit of 96 MiB" in (await scenario.view(1)).reason.message
            await scenario.passes(2)
            assert await scenario.state(2) == "merged: merged_by_queue"
    assert outages(log) == 0


@asynchronous
async def test_a_pull_request_that_git_cannot_fetch_stops_no_other_although_it_is_not_submitted(tmp_path: Path):
    with capture_warnings() as log:
        async with a_scenario(tmp_path, setup=SETUP) as scenario:
            scenario.open(2)
            await scenario.submit(2)
            open_with_large_files(scenario, 1)
            await scenario.advance_time(10 * MINUTE)
            assert attempts(log) == 1
            scenario.open(3)
            await scenario.submit(3)
            await scenario.passes(2)
            await scenario.restart()
            await scenario.advance_time(10 * MINUTE)
            await scenario.passes(3)
            assert await scenario.state(2) == "merged: merged_by_queue"
            assert await scenario.state(3) == "merged: merged_by_queue"
    assert (attempts(log), outages(log)) == (2, 0)


@asynchronous
async def test_a_preview_of_a_pull_request_that_git_cannot_fetch_is_refused_after_one_attempt(tmp_path: Path):
    async with a_scenario(tmp_path, setup=SETUP) as scenario:
        open_with_large_files(scenario, 1)
        await scenario.advance_time(MINUTE)
        with capture_warnings() as log:
            for _ in range(3):
                found = await preview(scenario, 1)
                assert "The queue would refuse it: git fetch needs more memory" in found.explanation
                await scenario.advance_time(MINUTE)
        assert attempts(log) == 1


@asynchronous
async def test_a_merge_that_git_can_no_longer_repeat_within_its_limits_stops_no_audit(tmp_path: Path):
    """An operator can lower the limits after the merge. Git finds the deleted file again, so there is no conflict."""
    async with a_scenario(tmp_path) as scenario:
        scenario.origin.commit("main", {"README": BOMB_CONTENT})
        open_bomb(scenario, 1, levels=ALLOWED_LEVELS - 1)
        scenario.origin.commit("main", {"README": BOMB_CONTENT + "\nand more\n"})
        await scenario.advance_time(MINUTE)
        await scenario.submit(1)
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"
        scenario.setup = ScenarioSetup(git_limits=Limits(memory_bytes=12 * MIB, repository_memory_bytes=96 * MIB))
        await scenario.restart()
        with capture_warnings() as log:
            report = await scenario.service.merge_auditor.audit_on_request(KEY, 20)
        assert [each.number for each in report.landings] == [1]
        assert report.mismatches == ()
    assert attempts(log) == 1
