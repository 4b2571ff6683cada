"""The words of merged commits: templates of the repository and of the queue, authors, co-authors, and the preview."""

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from mergeyard.domain.config import Config, LandingMethod, MergeMethod
from mergeyard.domain.ids import PullRequestNumber, RunId
from mergeyard.domain.states import RunStatus
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.previews import UNKNOWN_RUN, MergePreview, MergesBy, find_run
from mergeyard.service.tasks import commit_builder
from tests.support.asynchronous import asynchronous
from tests.support.repositories import ADA
from tests.support.scenario import CONFIG, KEY, SECOND, Scenario, a_scenario

BOB = "Bob <bob@example.org>"
SQUASH = Config(merge_method=MergeMethod.SQUASH)
WITH_TEMPLATE = (
    f'{CONFIG}\n[commit]\nsquash = """\n{{title}}\n\nFrom the file, by {{author}}: {{branch}} into {{base}}\n"""\n'
)


def last_message(scenario: Scenario, place: str = "main") -> str:
    return scenario.origin.run("log", "-1", "--format=%B", scenario.origin.tip(place)).decode().rstrip("\n") + "\n"


def last_author(scenario: Scenario) -> str:
    return scenario.origin.log("main", "%an <%ae>")[-1]


async def preview(scenario: Scenario, number: int) -> MergePreview:
    return await scenario.service.previews.preview_merge(KEY, PullRequestNumber(number))


def open_with_two_authors(scenario: Scenario) -> None:
    """By Ada, with a commit of Bob's."""
    scenario.open(1)
    scenario.origin.commit("feature1", {"b": "1"}, message=f"More\n\nSigned-off-by: {BOB}", author=BOB)
    scenario.set_pull_request(1, head=scenario.origin.tip("feature1"), author=ADA, title="Greet")


@pytest.mark.parametrize("landing", LandingMethod)
@asynchronous
async def test_a_squashed_commit_has_the_words_of_the_preview(tmp_path: Path, landing: LandingMethod):
    async with a_scenario(tmp_path, Config(merge_method=MergeMethod.SQUASH, landing=landing)) as scenario:
        open_with_two_authors(scenario)
        before = await preview(scenario, 1)
        await scenario.submit(1)
        run = scenario.run_of(1).id
        expected = f"""Greet (#1)

Co-authored-by: {BOB}
Signed-off-by: {BOB}
Mergeyard-Pull-Request: 1
Mergeyard-Run: {run}
Mergeyard-Head: {scenario.origin.tip("feature1")}
"""
        assert before.messages == (expected.replace(run, UNKNOWN_RUN),)
        assert (await preview(scenario, 1)).messages == (expected,)
        await scenario.passes(1)
        assert last_message(scenario) == expected
        assert last_author(scenario) == ADA


@asynchronous
async def test_the_template_of_the_repository_counts_before_that_of_the_queue(tmp_path: Path):
    config = Config(merge_method=MergeMethod.SQUASH, squash_template="{title}\n\nFrom the queue")
    async with a_scenario(tmp_path, config) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1)
        await scenario.passes(1)
        assert last_message(scenario).startswith("Change 1\n\nFrom the queue\n\nMergeyard-Pull-Request: 1\n")
        scenario.origin.commit("main", {".mergeyard.toml": WITH_TEMPLATE})
        await scenario.advance_time(2 * SECOND)
        await scenario.submit(2)
        await scenario.passes(2)
        expected = "Change 2\n\nFrom the file, by Ada: feature2 into main\n\nMergeyard-Pull-Request: 2\n"
        assert last_message(scenario).startswith(expected)


@asynchronous
async def test_a_pull_request_cannot_change_the_template_of_its_own_message(tmp_path: Path):
    async with a_scenario(tmp_path, SQUASH) as scenario:
        scenario.open(1, files={".mergeyard.toml": WITH_TEMPLATE})
        await scenario.submit(1)
        await scenario.passes(1)
        assert last_message(scenario).startswith("Change 1 (#1)\n\nMergeyard-Pull-Request: 1\n")


@asynchronous
async def test_a_pull_request_that_breaks_the_template_is_refused(tmp_path: Path):
    async with a_scenario(tmp_path, SQUASH) as scenario:
        scenario.open(1, files={".mergeyard.toml": WITH_TEMPLATE.replace("{title}", "{titel}")})
        await scenario.submit(1)
        assert (await scenario.state(1)).startswith("failed")
        assert "commit.squash: unknown field {titel}; known are" in (await scenario.view(1)).reason.message


@asynchronous
async def test_the_authors_of_a_pull_request_below_are_not_named_again(tmp_path: Path):
    async with a_scenario(tmp_path, SQUASH) as scenario:
        open_with_two_authors(scenario)
        scenario.open(2, base="feature1")
        await scenario.submit(1, 2)
        message = last_message(scenario, scenario.run_of(2).tip)
        assert message.startswith("Change 2 (#2)\n\nMergeyard-Pull-Request: 2\n")
        await scenario.passes(1)
        await scenario.passes(2)
        assert last_message(scenario).startswith("Change 2 (#2)\n\nMergeyard-Pull-Request: 2\n")


@asynchronous
async def test_the_preview_of_a_rebase_that_differs_from_the_merge_says_why_it_is_refused(tmp_path: Path):
    """The merge commit resolves a conflict, so the commits cannot be rebased one by one."""
    async with a_scenario(tmp_path, Config(merge_method=MergeMethod.REBASE)) as scenario:
        scenario.open(1, files={"README": "hello from 1\n"})
        scenario.origin.commit("main", {"README": "hello from main\n"})
        scenario.origin.commit("feature1", {"README": "hello from both\n"}, message="Merge main", merging="main")
        scenario.set_pull_request(1, head=scenario.origin.tip("feature1"), title="Greet", author=BOB)
        await scenario.advance_time(2 * SECOND)
        shown = await preview(scenario, 1)
        assert shown.messages == ()
        assert "Its commits conflict in README; the merge does not." in shown.explanation
        await scenario.submit(1)
        assert await scenario.state(1) == "failed: rebase_differs"


@asynchronous
async def test_the_preview_of_a_rebase_has_the_message_of_every_commit(tmp_path: Path):
    async with a_scenario(tmp_path, Config(merge_method=MergeMethod.REBASE)) as scenario:
        open_with_two_authors(scenario)
        before = await preview(scenario, 1)
        assert [message.partition("\n")[0] for message in before.messages] == ["A change", "More"]
        assert all(f"\nMergeyard-Run: {UNKNOWN_RUN}\n" in message for message in before.messages)
        await scenario.submit(1)
        run = scenario.run_of(1).id
        tested = await preview(scenario, 1)
        assert tested.messages == tuple(message.replace(UNKNOWN_RUN, run) for message in before.messages)
        await scenario.passes(1)
        assert last_message(scenario) == tested.messages[-1]


@asynchronous
async def test_the_preview_of_a_tested_commit_is_its_message_and_not_a_newer_one(tmp_path: Path):
    async with a_scenario(tmp_path, SQUASH) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        scenario.set_pull_request(1, title="Renamed")
        (message,) = (await preview(scenario, 1)).messages
        await scenario.passes(1)
        assert message == last_message(scenario)
        assert message.startswith("Change 1 (#1)\n")


@asynchronous
async def test_the_preview_is_true_while_a_run_keeps_earlier_settings(tmp_path: Path):
    async with a_scenario(tmp_path, SQUASH) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        before = await preview(scenario, 1)
        await scenario.update(merge_method=MergeMethod.MERGE_COMMIT)
        assert await preview(scenario, 1) == before
        await scenario.update(landing=LandingMethod.PROVIDER_MERGE)
        assert await preview(scenario, 1) == before
        expected = "The queue pushes the tested commit and moves the head branch feature1 to it."
        assert (before.merges_by, before.explanation) == (MergesBy.TESTED_COMMIT, expected)
        tested = scenario.run_of(1).tip
        await scenario.passes(1)
        assert scenario.origin.tip("main") == scenario.origin.tip("feature1") == tested
        assert (last_message(scenario),) == before.messages


@asynchronous
async def test_the_preview_of_a_restarted_test_has_the_current_settings(tmp_path: Path):
    async with a_scenario(tmp_path, SQUASH) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        await scenario.passes(2)
        assert (await scenario.state(2)).startswith("tests_passed")
        await scenario.update(merge_method=MergeMethod.MERGE_COMMIT, concurrency=1)
        await scenario.restart_tests(2)
        restarted = await preview(scenario, 2)
        expected = "The queue pushes the tested commit, which contains the commits of the pull request."
        assert (restarted.merge_method, restarted.explanation) == (MergeMethod.MERGE_COMMIT, expected)
        (message,) = restarted.messages
        assert message.startswith("Merge pull request #2: Change 2\n")
        assert message.endswith(f"\nMergeyard-Run: {UNKNOWN_RUN}\n")


@asynchronous
async def test_the_preview_of_a_merge_commit(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        found = await preview(scenario, 1)
        assert found.messages == (
            f"Merge pull request #1: Change 1\n\nMergeyard-Pull-Request: 1\nMergeyard-Run: {UNKNOWN_RUN}\n",
        )
        assert (found.merge_method, found.merges_by) == (MergeMethod.MERGE_COMMIT, MergesBy.TESTED_COMMIT)


@asynchronous
async def test_there_is_no_preview_of_a_pull_request_that_cannot_merge(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1)
        await scenario.passes(1)
        scenario.set_pull_request(2, state="closed")
        for number, code in ((1, Code.PR_ALREADY_MERGED), (2, Code.PR_CLOSED), (3, Code.PR_NOT_FOUND)):
            with pytest.raises(RequestRefused) as refused:
                await preview(scenario, number)
            assert refused.value.code is code
        scenario.open(4)
        scenario.origin.delete_ref("main")
        with pytest.raises(RequestRefused) as refused:
            await preview(scenario, 4)
        assert refused.value.code is Code.BRANCH_NOT_FOUND


@asynchronous
async def test_the_preview_says_what_the_queue_would_not_merge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async with a_scenario(tmp_path, Config(merge_method=MergeMethod.REBASE)) as scenario:
        scenario.open(1, 2, 3, files={"README": "hello from a branch\n"})
        scenario.set_pull_request(1, base="release")
        scenario.origin.commit("main", {"README": "hello from main\n"})
        found = await preview(scenario, 1)
        expected = "This queue does not merge it: its base branch is release. Change its base branch to main first."
        assert (found.explanation, found.messages) == (expected, ())
        found = await preview(scenario, 2)
        assert (found.explanation, found.messages) == ("It has conflicts with main: resolve them, then push.", ())
        monkeypatch.setattr(commit_builder, "MAX_REBASE_COMMITS", 1)
        scenario.push(3, {"b": "1"})
        found = await preview(scenario, 3)
        assert found.explanation.startswith("The queue would refuse it: The pull request has more than 1 commits")
        assert found.messages == ()


@asynchronous
async def test_a_preview_counts_for_some_seconds_unless_the_queue_changes_it(tmp_path: Path):
    async with a_scenario(tmp_path, SQUASH) as scenario:
        scenario.open(1)
        first, *others = await asyncio.gather(*(preview(scenario, 1) for _ in range(3)))
        assert all(each is first for each in others)
        scenario.set_pull_request(1, title="Renamed")
        assert await preview(scenario, 1) is first
        await scenario.advance_time(6 * SECOND)
        renamed = await preview(scenario, 1)
        assert renamed.messages[0].startswith("Renamed (#1)\n")
        await scenario.submit(1)
        assert scenario.run_of(1).id in (await preview(scenario, 1)).messages[0]


@asynchronous
async def test_the_preview_is_about_the_run_of_the_submission(tmp_path: Path):
    async with a_scenario(tmp_path, SQUASH) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        queue, run = (await scenario.service.registry.get(KEY)).queue, scenario.run_of(1)
        earlier = replace(run, id=RunId("earlier"), status=RunStatus.SUCCEEDED)
        queue = replace(queue, runs={earlier.id: earlier, **queue.runs})
        head = scenario.origin.tip("feature1")
        assert find_run(queue, PullRequestNumber(1), head) is run
        assert find_run(queue, PullRequestNumber(1), scenario.origin.tip("main")) is None
