"""The merge audit compares the target branch with the recorded merges, and finds and reports manipulations."""

from pathlib import Path
from shutil import rmtree

import pytest
from msgspec.structs import replace

from mergeyard.domain.config import Config, DirectMergeMode, LandingMethod, MergeMethod, Mode
from mergeyard.domain.ids import QueueKey, Sha
from mergeyard.domain.pull_requests import StatusState, impacted_targets_from_names
from mergeyard.domain.states import QueueState
from mergeyard.service.merge_audit.compare import AuditReport
from mergeyard.service.merge_audit.records import BranchHistory, LandingForm, read_branch_history, read_last_merges
from mergeyard.service.merge_audit.wholeness import find_incomplete_merges
from mergeyard.service.submissions import SubmitOptions
from tests.scenario.test_webhooks import create_webhook
from tests.support.asynchronous import asynchronous
from tests.support.scenario import KEY, MINUTE, Scenario, ScenarioSetup, a_scenario
from tests.support.web_client import a_signed_in_client

STABLE = QueueKey(KEY.repo, "stable")
HOURLY_POLLING = ScenarioSetup(poll_interval_ms=60 * MINUTE)
AUDIT_INTERVAL = 3 * MINUTE
OURS = "Mergeyard <mergeyard@example.org>"


async def land(scenario: Scenario, *numbers: int) -> None:
    """One after the other."""
    scenario.open(*numbers)
    for number in numbers:
        await scenario.submit(number)
        await scenario.passes(number)


async def audit(scenario: Scenario, last: int = 20) -> AuditReport:
    report = await scenario.service.merge_auditor.audit_on_request(KEY, last)
    await scenario.wait_until_idle()
    return report


async def mismatches(scenario: Scenario) -> list[str]:
    """What differs, by kind and pull request."""
    return [f"{each.kind} #{each.number}" for each in (await audit(scenario)).mismatches]


async def verdicts(scenario: Scenario) -> list[str]:
    report = await audit(scenario)
    assert report.mismatches == ()
    return [f"#{each.number} {each.form}: {report.verdict_of(each)}" for each in report.landings]


def message(scenario: Scenario, below: int = 0) -> str:
    """The message of the last commit, or of an earlier one."""
    return scenario.origin.log("main", "%B")[-1 - below]


def rewind(scenario: Scenario, commits: int) -> None:
    scenario.origin.set_ref("main", scenario.origin.run("rev-parse", f"main~{commits}").decode().strip())


def alter_last_landing(scenario: Scenario) -> Sha:
    """Replaces the last landing by a commit with the same message and other contents, as a tool does that rewrites
    history and keeps the committer."""
    original = message(scenario)
    rewind(scenario, 1)
    return scenario.origin.commit("main", {"planted": "by hand\n"}, message=original, committer=OURS)


# No mismatch


@pytest.mark.parametrize("method", MergeMethod)
@asynchronous
async def test_unchanged_target_branch_is_as_tested(tmp_path: Path, method: MergeMethod):
    config = Config(merge_method=method, batch=True, batching_min_size=2)
    async with a_scenario(tmp_path, config) as scenario:
        scenario.open(1, 2, 3, 4)
        scenario.push(2, {"file2": "another commit\n"})
        await scenario.submit(1, 2, 3, 4)
        await scenario.report_all_runs()
        assert await verdicts(scenario) == [f"#{number} tested_commit: as_tested" for number in (1, 2, 3, 4)]


@asynchronous
async def test_rebased_landing_is_as_tested(tmp_path: Path):
    async with a_scenario(tmp_path, Config(mode=Mode.PARALLEL)) as scenario:
        scenario.open(1, 2)
        for number, lane in ((1, "x"), (2, "y")):
            await scenario.upload_impacted_targets(number, impacted_targets_from_names(lane))
            await scenario.submit(number)
        await scenario.passes(1)
        await scenario.passes(2)
        assert await verdicts(scenario) == ["#1 tested_commit: as_tested", "#2 rebased: as_tested"]
        await scenario.service.stop()
        rmtree(scenario.folder / "mirrors")
        await scenario.start()
        assert await verdicts(scenario) == ["#1 tested_commit: as_tested", "#2 rebased: not_comparable"]


@pytest.mark.parametrize("method", MergeMethod)
@asynchronous
async def test_direct_merge_is_as_tested(tmp_path: Path, method: MergeMethod):
    config = Config(merge_method=method, direct_merge_mode=DirectMergeMode.ALWAYS)
    async with a_scenario(tmp_path, config) as scenario:
        scenario.open(1)
        await scenario.report_without_waiting(scenario.origin.tip("feature1"))
        await scenario.submit(1)
        assert await scenario.state(1) == "merged: merged_directly"
        assert await verdicts(scenario) == ["#1 tested_commit: as_tested"]


@asynchronous
async def test_provider_merge_is_as_tested(tmp_path: Path):
    config = Config(landing=LandingMethod.PROVIDER_MERGE, merge_method=MergeMethod.SQUASH)
    async with a_scenario(tmp_path, config) as scenario:
        await land(scenario, 1, 2)
        assert await verdicts(scenario) == [f"#{number} provider_merge: as_tested" for number in (1, 2)]


@asynchronous
async def test_quoting_rewording_and_removing_landings_is_no_mismatch(tmp_path: Path):
    async with a_scenario(tmp_path, setup=HOURLY_POLLING) as scenario:
        await land(scenario, 1, 2)
        as_landed = scenario.origin.files("main")
        quoted = f"By hand\n\n{message(scenario)}\n\nis what I mean"
        scenario.origin.commit("main", {"theirs": "1\n"}, message=quoted)
        assert await verdicts(scenario) == ["#1 tested_commit: as_tested", "#2 tested_commit: as_tested"]
        better = f"Better message\n\n{message(scenario, 1)}"
        rewind(scenario, 2)
        scenario.origin.commit("main", as_landed, message=better)
        assert await verdicts(scenario) == ["#1 tested_commit: as_tested", "#2 tested_commit: removed"]
        report = await audit(scenario)
        assert [note.partition(")")[2] for note in report.notes] == [" was removed from the target branch by a push."]
        assert scenario.queue_actor.queue.state is QueueState.RUNNING


# Mismatches


@pytest.mark.long
@asynchronous
async def test_replaced_landing_pauses_the_queue_once(tmp_path: Path):
    async with a_scenario(tmp_path, setup=HOURLY_POLLING) as scenario:
        await create_webhook(scenario)
        await land(scenario, 1, 2)
        copy = alter_last_landing(scenario)
        await scenario.advance_time(AUDIT_INTERVAL)
        queue = scenario.queue_actor.queue
        assert (queue.state, queue.target_branch.tip) == (QueueState.PAUSED, copy)
        assert queue.state_reason.startswith(
            f"#2 ({(await scenario.submission(2)).merged_sha or '':.12}) was replaced by {copy[:12]}"
        )
        notified = scenario.sender.received[-1].payload["data"]
        assert (notified["type"], notified["state"], notified["reason"]) == (
            "queue.state_changed",
            "PAUSED",
            "audit_mismatch",
        )
        await scenario.restart()
        await scenario.update(state=QueueState.RUNNING)
        await scenario.advance_time(6 * AUDIT_INTERVAL)
        assert scenario.queue_actor.queue.state is QueueState.RUNNING
        assert await mismatches(scenario) == ["altered #2"]
        await land(scenario, 3)
        assert await scenario.state(3) == "merged: merged_by_queue"


@pytest.mark.long
@asynchronous
async def test_landing_that_disappeared_during_downtime_is_found(tmp_path: Path):
    """The next process has an empty mirror, which never contained the removed commits."""
    async with a_scenario(tmp_path, setup=HOURLY_POLLING) as scenario:
        await land(scenario, 1, 2, 3)
        await scenario.service.stop()
        rmtree(scenario.folder / "mirrors")
        rewind(scenario, 3)
        scenario.origin.run("gc", "--quiet", "--prune=now")
        await scenario.start()
        await scenario.advance_time(AUDIT_INTERVAL)
        assert scenario.queue_actor.queue.state is QueueState.PAUSED
        assert await mismatches(scenario) == ["missing #1", "missing #2"]


@asynchronous
async def test_landing_that_appears_twice_is_found(tmp_path: Path):
    async with a_scenario(tmp_path, Config(merge_method=MergeMethod.SQUASH)) as scenario:
        await land(scenario, 1)
        scenario.origin.commit("main", {"file1": "reverted\n"}, message="Revert it")
        scenario.origin.commit("main", {"file1": "1\n"}, message=message(scenario, 1), committer=OURS)
        assert await mismatches(scenario) == ["landed_twice #1"]
        assert scenario.queue_actor.queue.state is QueueState.PAUSED
        await scenario.update(state=QueueState.RUNNING)
        assert await mismatches(scenario) == ["landed_twice #1"]
        assert scenario.queue_actor.queue.state is QueueState.RUNNING


@asynchronous
async def test_a_forged_landing_is_found_and_another_one_pauses_again(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        await land(scenario, 1)
        forged = message(scenario).replace("Mergeyard-Pull-Request: 1", "Mergeyard-Pull-Request: 7")
        scenario.origin.commit("main", {"planted": "1\n"}, message=forged, committer=OURS)
        assert await mismatches(scenario) == ["unrecorded #7"]
        await scenario.update(state=QueueState.DRAINING)
        scenario.origin.commit("main", {"planted": "2\n"}, message=forged, committer=OURS)
        scenario.origin.commit("main", {"theirs": "2\n"})
        scenario.origin.commit("main", {"planted": "3\n"}, message=forged, committer=OURS)
        assert await mismatches(scenario) == ["unrecorded #7", "unrecorded #7"]
        assert scenario.queue_actor.queue.state is QueueState.PAUSED


@asynchronous
async def test_trailers_in_a_commit_of_another_author_are_no_claim(tmp_path: Path):
    async with a_scenario(tmp_path, Config(merge_method=MergeMethod.SQUASH)) as scenario:
        await land(scenario, 1)
        scenario.origin.commit("main", {"file1": "reverted\n"}, message="Revert it")
        scenario.origin.commit("main", {"file1": "1\n"}, message=message(scenario, 1))
        forged = message(scenario).replace("Mergeyard-Pull-Request: 1", "Mergeyard-Pull-Request: 7")
        scenario.origin.commit("main", {"planted": "1\n"}, message=forged)
        assert await mismatches(scenario) == []


@pytest.mark.parametrize("method", MergeMethod)
@asynchronous
async def test_a_merge_that_lost_a_part_of_its_change_is_found(tmp_path: Path, method: MergeMethod):
    async with a_scenario(tmp_path, Config(merge_method=method)) as scenario:
        scenario.open(1, files={"one": "1", "two": "2"})
        await scenario.submit(1)
        await scenario.passes(1)
        (merge,) = await read_last_merges(scenario.store, scenario.queue_actor.id, KEY.repo, 1)
        context = await scenario.service.repositories.open_context(scenario.queue_actor)
        history = await read_branch_history(context, [merge])
        assert await find_incomplete_merges(context, [merge], history) == frozenset()
        scenario.origin.branch("lacking", base="main", files={"two": None})
        await context.mirror.fetch(["refs/heads/lacking"])
        assert merge.run is not None
        step = replace(merge.run.chain[0], tree=scenario.origin.tree("lacking"))
        lacking = replace(merge, run=replace(merge.run, chain=(step,)))
        assert await find_incomplete_merges(context, [lacking], history) == {merge.submission.id}


@pytest.mark.parametrize("method", MergeMethod)
@asynchronous
async def test_a_rebased_landing_that_lost_a_part_of_its_change_is_found(tmp_path: Path, method: MergeMethod):
    """Its tested commit has the whole change."""
    async with a_scenario(tmp_path, Config(mode=Mode.PARALLEL, merge_method=method)) as scenario:
        scenario.open(1, files={"one": "1", "two": "2"})
        await scenario.upload_impacted_targets(1, impacted_targets_from_names("fe"))
        scenario.open(2)
        await scenario.upload_impacted_targets(2, impacted_targets_from_names("be"))
        await scenario.submit(1, 2)
        await scenario.passes(2)
        await scenario.passes(1)
        merges = await read_last_merges(scenario.store, scenario.queue_actor.id, KEY.repo, 2)
        context = await scenario.service.repositories.open_context(scenario.queue_actor)
        history = await read_branch_history(context, merges)
        merge = merges[-1]
        assert merge.form is LandingForm.REBASED
        assert await find_incomplete_merges(context, merges, history) == frozenset()
        scenario.origin.branch("lacking", base="main", files={"two": None})
        await context.mirror.fetch(["refs/heads/lacking"])
        tree = scenario.origin.tree("lacking")
        commits = [
            replace(commit, tree=tree) if commit.sha == merge.commit else commit
            for commit in history.first_parent_commits
        ]
        lacking = BranchHistory(history.tip, history.base, commits)
        assert await find_incomplete_merges(context, merges, lacking) == {merge.submission.id}


@asynchronous
async def test_cherry_pick_from_another_queue_is_no_mismatch(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.origin.branch("stable", base="main")
        await scenario.create_queue(key=STABLE)
        scenario.open(1)
        scenario.set_pull_request(1, base="stable")
        await scenario.service.submissions.submit(scenario.build_command(1, STABLE), SubmitOptions())
        await scenario.wait_until_idle()
        (run,) = (await scenario.service.registry.get(STABLE)).queue.runs_in_progress
        await scenario.report(run.tip, StatusState.SUCCESS)
        picked = scenario.origin.log("stable", "%B")[-1]
        await land(scenario, 2)
        scenario.origin.commit("main", {"picked": "1\n"}, message=picked)
        assert await mismatches(scenario) == []


@asynchronous
async def test_cherry_pick_from_a_deleted_queue_is_no_mismatch(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        await land(scenario, 1)
        picked = message(scenario)
        await scenario.service.queues.delete(KEY, "ada", b"", None)
        await scenario.create_queue()
        await scenario.wait_until_idle()
        await land(scenario, 2)
        scenario.origin.commit("main", {"picked": "1\n"}, message=picked)
        assert await mismatches(scenario) == []


# Schedule and display


@asynchronous
async def test_unreachable_host_causes_no_mismatch_and_is_audited_later(tmp_path: Path):
    async with a_scenario(tmp_path, setup=HOURLY_POLLING) as scenario:
        await land(scenario, 1)
        away = scenario.folder / "away.git"
        scenario.origin.path.rename(away)
        await scenario.advance_time(AUDIT_INTERVAL)
        assert scenario.queue_actor.queue.state is QueueState.RUNNING
        away.rename(scenario.origin.path)
        alter_last_landing(scenario)
        await scenario.advance_time(2 * MINUTE)
        assert scenario.queue_actor.queue.state is QueueState.PAUSED


@asynchronous
async def test_queue_page_shows_the_mismatch_prominently(tmp_path: Path):
    async with a_scenario(tmp_path, setup=HOURLY_POLLING) as scenario, a_signed_in_client(scenario) as visitor:
        await land(scenario, 1)
        copy = alter_last_landing(scenario)
        await audit(scenario)
        page = await visitor.get("/queues/git.local/acme/app:main")
        assert page.one(".alarm").text.startswith("The target branch differs from what is recorded")
        assert copy[:12] in page.one(".words").text
