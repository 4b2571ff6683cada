"""What landed is compared with what was recorded, again and again: what people plant in a target is found and told."""

from pathlib import Path
from shutil import rmtree

import pytest

from mergeyard.domain.config import Config, DirectMergeMode, LandingMethod, MergeMethod, Mode
from mergeyard.domain.ids import Sha
from mergeyard.domain.repositories import QueueKey
from mergeyard.domain.states import QueueState
from mergeyard.domain.statuses import StatusState
from mergeyard.domain.targets import named
from mergeyard.service.submissions import Wish
from mergeyard.service.verifying.verdicts import Report
from tests.scenario.test_webhooks import listen
from tests.support.asynchronous import asynchronous
from tests.support.browsing import a_visitor
from tests.support.scenario import KEY, MINUTE, Scenario, Stage, a_scenario

STABLE = QueueKey(KEY.repo, "stable")
SELDOM = Stage(look_every=60 * MINUTE)
A_ROUND = 3 * MINUTE


async def landed(scenario: Scenario, *numbers: int) -> None:
    """One after the other."""
    scenario.open(*numbers)
    for number in numbers:
        await scenario.submit(number)
        await scenario.passes(number)


async def verified(scenario: Scenario, last: int = 20) -> Report:
    report = await scenario.service.verifier.verify(KEY, last)
    await scenario.rest()
    return report


async def found(scenario: Scenario) -> list[str]:
    """What differs, by kind and pull request."""
    return [f"{each.doubt} #{each.number}" for each in (await verified(scenario)).mismatches]


async def verdicts(scenario: Scenario) -> list[str]:
    report = await verified(scenario)
    assert report.mismatches == ()
    return [f"#{each.number} {each.form}: {report.verdict(each)}" for each in report.landings]


def message(scenario: Scenario, below: int = 0) -> str:
    """Of the last commit, or of one so many below it."""
    return scenario.origin.log("main", "%B")[-1 - below]


def rewind(scenario: Scenario, commits: int) -> None:
    scenario.origin.set("main", scenario.origin.run("rev-parse", f"main~{commits}").decode().strip())


def altered(scenario: Scenario) -> Sha:
    """The last landing is pushed anew, with the same words and other contents."""
    words = message(scenario)
    rewind(scenario, 1)
    return scenario.origin.commit("main", {"planted": "by hand\n"}, message=words)


# What is as it should be


@pytest.mark.parametrize("method", MergeMethod)
@asynchronous
async def test_a_target_that_nobody_touched_is_as_tested(tmp_path: Path, method: MergeMethod):
    config = Config(merge_method=method, batch=True, batching_min_size=2)
    async with a_scenario(tmp_path, config) as scenario:
        scenario.open(1, 2, 3, 4)
        scenario.push(2, {"file2": "another commit\n"})
        await scenario.submit(1, 2, 3, 4)
        await scenario.judges()
        assert await verdicts(scenario) == [f"#{number} tested_commit: as_tested" for number in (1, 2, 3, 4)]


@asynchronous
async def test_what_was_composed_is_as_tested(tmp_path: Path):
    async with a_scenario(tmp_path, Config(mode=Mode.PARALLEL)) as scenario:
        scenario.open(1, 2)
        for number, lane in ((1, "x"), (2, "y")):
            await scenario.set_targets(number, named(lane))
            await scenario.submit(number)
        await scenario.passes(1)
        await scenario.passes(2)
        assert await verdicts(scenario) == ["#1 tested_commit: as_tested", "#2 composed: as_tested"]
        await scenario.service.stop()
        rmtree(scenario.folder / "mirrors")
        await scenario.starts()
        assert await verdicts(scenario) == ["#1 tested_commit: as_tested", "#2 composed: not_comparable"]


@pytest.mark.parametrize("method", MergeMethod)
@asynchronous
async def test_what_merged_without_a_run_is_as_tested(tmp_path: Path, method: MergeMethod):
    config = Config(merge_method=method, direct_merge_mode=DirectMergeMode.ALWAYS)
    async with a_scenario(tmp_path, config) as scenario:
        scenario.open(1)
        await scenario.hear(scenario.origin.tip("feature1"))
        await scenario.submit(1)
        assert await scenario.state(1) == "merged: merged_directly"
        assert await verdicts(scenario) == ["#1 direct: as_tested"]


@asynchronous
async def test_what_was_merged_one_by_one_is_as_tested(tmp_path: Path):
    config = Config(landing=LandingMethod.PROVIDER_MERGE, merge_method=MergeMethod.SQUASH)
    async with a_scenario(tmp_path, config) as scenario:
        await landed(scenario, 1, 2)
        assert await verdicts(scenario) == [f"#{number} provider_merge: as_tested" for number in (1, 2)]


@asynchronous
async def test_what_people_do_openly_is_their_right(tmp_path: Path):
    """They quote us, give a landing other words, and take one off."""
    async with a_scenario(tmp_path, stage=SELDOM) as scenario:
        await landed(scenario, 1, 2)
        as_landed = scenario.origin.files("main")
        quoted = f"By hand\n\n{message(scenario)}\n\nis what I mean"
        scenario.origin.commit("main", {"theirs": "1\n"}, message=quoted)
        assert await verdicts(scenario) == ["#1 tested_commit: as_tested", "#2 tested_commit: as_tested"]
        better = f"Better words\n\n{message(scenario, 1)}"
        rewind(scenario, 2)
        scenario.origin.commit("main", as_landed, message=better)
        assert await verdicts(scenario) == ["#1 tested_commit: as_tested", "#2 tested_commit: taken_off"]
        report = await verified(scenario)
        assert [note.partition(")")[2] for note in report.notes] == [" was taken off the target by somebody."]
        assert scenario.keeper.queue.state is QueueState.RUNNING


# What people plant


@asynchronous
async def test_a_landing_that_was_pushed_anew_with_other_contents_pauses_the_queue_once(tmp_path: Path):
    async with a_scenario(tmp_path, stage=SELDOM) as scenario:
        await listen(scenario)
        await landed(scenario, 1, 2)
        copy = altered(scenario)
        await scenario.time_passes(A_ROUND)
        queue = scenario.keeper.queue
        assert (queue.state, queue.target.tip) == (QueueState.PAUSED, copy)
        assert queue.words.startswith(
            f"#2 ({(await scenario.stay(2)).merged_sha or '':.12}) was replaced by {copy[:12]}"
        )
        told = scenario.sender.received[-1].payload["data"]
        assert (told["type"], told["state"], told["reason"]) == ("queue.state_changed", "PAUSED", "audit_mismatch")
        await scenario.starts_again()
        await scenario.update(state=QueueState.RUNNING)
        await scenario.time_passes(6 * A_ROUND)
        assert scenario.keeper.queue.state is QueueState.RUNNING
        assert await found(scenario) == ["altered #2"]
        await landed(scenario, 3)
        assert await scenario.state(3) == "merged: merged_by_queue"


@asynchronous
async def test_a_landing_that_vanished_unseen_is_found(tmp_path: Path):
    """The one who takes over has never had what was taken off meanwhile."""
    async with a_scenario(tmp_path, stage=SELDOM) as scenario:
        await landed(scenario, 1, 2, 3)
        await scenario.service.stop()
        rmtree(scenario.folder / "mirrors")
        rewind(scenario, 3)
        scenario.origin.run("gc", "--quiet", "--prune=now")
        await scenario.starts()
        await scenario.time_passes(A_ROUND)
        assert scenario.keeper.queue.state is QueueState.PAUSED
        assert await found(scenario) == ["missing #1", "missing #2"]


@asynchronous
async def test_a_landing_that_came_a_second_time_is_found(tmp_path: Path):
    async with a_scenario(tmp_path, Config(merge_method=MergeMethod.SQUASH)) as scenario:
        await landed(scenario, 1)
        scenario.origin.commit("main", {"file1": "reverted\n"}, message="Revert it")
        scenario.origin.commit("main", {"file1": "1\n"}, message=message(scenario, 1))
        assert await found(scenario) == ["landed_twice #1"]
        assert scenario.keeper.queue.state is QueueState.PAUSED
        await scenario.update(state=QueueState.RUNNING)
        assert await found(scenario) == ["landed_twice #1"]
        assert scenario.keeper.queue.state is QueueState.RUNNING


@asynchronous
async def test_a_forged_landing_is_found_and_another_one_pauses_again(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        await landed(scenario, 1)
        forged = message(scenario).replace("Mergeyard-Pull-Request: 1", "Mergeyard-Pull-Request: 7")
        scenario.origin.commit("main", {"planted": "1\n"}, message=forged)
        assert await found(scenario) == ["unrecorded #7"]
        await scenario.update(state=QueueState.DRAINING)
        scenario.origin.commit("main", {"planted": "2\n"}, message=forged)
        scenario.origin.commit("main", {"theirs": "2\n"})
        scenario.origin.commit("main", {"planted": "3\n"}, message=forged)
        assert await found(scenario) == ["unrecorded #7", "unrecorded #7"]
        assert scenario.keeper.queue.state is QueueState.PAUSED


@asynchronous
async def test_what_another_queue_landed_may_be_picked(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.origin.branch("stable", upon="main")
        await scenario.create_queue(key=STABLE)
        scenario.open(1)
        scenario.set_pull(1, base="stable")
        await scenario.service.submissions.submit(scenario.errand(1, STABLE), Wish())
        await scenario.rest()
        (run,) = (await scenario.service.yard.keeper(STABLE)).queue.runs_in_progress
        await scenario.report(run.tip, StatusState.SUCCESS)
        picked = scenario.origin.log("stable", "%B")[-1]
        await landed(scenario, 2)
        scenario.origin.commit("main", {"picked": "1\n"}, message=picked)
        assert await found(scenario) == []


@asynchronous
async def test_what_a_queue_landed_that_is_deleted_by_now_may_be_picked(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        await landed(scenario, 1)
        picked = message(scenario)
        await scenario.service.queues.delete(KEY, "ada", b"", None)
        await scenario.create_queue()
        await scenario.rest()
        await landed(scenario, 2)
        scenario.origin.commit("main", {"picked": "1\n"}, message=picked)
        assert await found(scenario) == []


# When


@asynchronous
async def test_a_host_that_is_away_doubts_nobody_and_is_asked_again(tmp_path: Path):
    async with a_scenario(tmp_path, stage=SELDOM) as scenario:
        await landed(scenario, 1)
        away = scenario.folder / "away.git"
        scenario.origin.path.rename(away)
        await scenario.time_passes(A_ROUND)
        assert scenario.keeper.queue.state is QueueState.RUNNING
        away.rename(scenario.origin.path)
        altered(scenario)
        await scenario.time_passes(2 * MINUTE)
        assert scenario.keeper.queue.state is QueueState.PAUSED


@asynchronous
async def test_the_page_of_the_queue_says_loudly_what_is_wrong(tmp_path: Path):
    async with a_scenario(tmp_path, stage=SELDOM) as scenario, a_visitor(scenario) as visitor:
        await landed(scenario, 1)
        copy = altered(scenario)
        await verified(scenario)
        page = await visitor.get("/queues/git.local/acme/app:main")
        assert page.one(".alarm").text.startswith("The target is not as it was recorded")
        assert copy[:12] in page.one(".words").text
