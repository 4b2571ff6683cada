"""Building test branches: conflicts, empty changes, unusual titles and file names, retries after a crash."""

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from mergeyard.adapters.signing import SshKey
from mergeyard.domain.config import Config, DirectMergeMode, MergeMethod
from mergeyard.domain.ids import Sha
from mergeyard.domain.pull_requests import StatusState
from mergeyard.domain.states import QueueState
from mergeyard.ports.git import Identity
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.tasks.commit_builder import MAX_REBASE_COMMITS
from tests.support.asynchronous import asynchronous
from tests.support.push_hooks import (
    AFTER_UPDATE,
    FILTER_SCRIPT,
    TEST_BRANCH_PUSH,
    PushGate,
    kill_pusher_after_update,
    refuse_pushes,
    remove_hooks,
)
from tests.support.repositories import Origin
from tests.support.scenario import SECOND, Scenario, ScenarioSetup, a_scenario

SIGNER = SshKey(Ed25519PrivateKey.generate())

every_method = pytest.mark.parametrize("method", list(MergeMethod))


@every_method
@asynchronous
async def test_a_conflict_with_the_target_fails_and_names_the_paths(tmp_path: Path, method: MergeMethod):
    async with a_scenario(tmp_path, Config(merge_method=method)) as scenario:
        scenario.open(1, files={"README": "hello from 1\n", "other": "1"})
        scenario.origin.commit("main", {"README": "hello from main\n"})
        await scenario.advance_time(2 * SECOND)
        await scenario.submit(1, forced=True)
        assert await scenario.state(1) == "failed: merge_conflict"
        assert (await scenario.view(1)).reason.message.endswith("Conflicts in README")
        assert scenario.test_branches() == []


@asynchronous
async def test_a_host_that_refuses_test_branches_pauses_the_queue_with_its_message(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        refuse_pushes(scenario.origin, TEST_BRANCH_PUSH, "GH013: branches have to begin with feature/")
        scenario.open(1)
        await scenario.submit(1)
        assert scenario.queue_actor.queue.state is QueueState.PAUSED
        assert "GH013: branches have to begin with feature/" in scenario.queue_actor.queue.state_reason
        remove_hooks(scenario.origin)
        await scenario.update(state=QueueState.RUNNING)
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_a_host_that_refuses_every_commit_of_the_queue_fails_no_pull_request(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        is_ours = 'git log -1 --format=%ce "$new" | grep -q mergeyard@example.org'
        refuse_pushes(scenario.origin, TEST_BRANCH_PUSH, "Committer must be a member of the team", only_if=is_ours)
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        assert scenario.queue_actor.queue.state is QueueState.PAUSED
        assert "Committer must be a member of the team" in scenario.queue_actor.queue.state_reason
        assert await scenario.state(1) == "pending: queue_paused"
        assert await scenario.state(2) == "not_ready: queue_paused"


@asynchronous
async def test_a_host_that_refuses_a_test_branch_once_does_not_pause_the_queue(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        once = tmp_path / "refused"
        refuse = f"[ -e {once} ] || {{ touch {once}; echo 'not now' >&2; exit 1; }}"
        scenario.origin.install_hook("pre-receive", f"{FILTER_SCRIPT.format(which=TEST_BRANCH_PUSH)}{refuse}")
        scenario.open(1)
        await scenario.submit(1)
        await scenario.advance_time(10 * SECOND)
        assert scenario.queue_actor.queue.state is QueueState.RUNNING
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_a_pull_request_that_cannot_be_merged_is_not_ready_unless_it_is_forced(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1, files={"README": "hello from 1\n"})
        scenario.origin.commit("main", {"README": "hello from main\n"})
        await scenario.advance_time(2 * SECOND)
        await scenario.submit(1)
        assert await scenario.state(1) == "not_ready: not_mergeable"


@every_method
@asynchronous
async def test_pr_that_conflicts_with_a_pr_ahead_waits_and_is_queued_again_when_that_pr_leaves(
    tmp_path: Path, method: MergeMethod
):
    async with a_scenario(tmp_path, Config(merge_method=method)) as scenario:
        open_conflicting(scenario)
        await scenario.submit(1, 2, 3)
        assert scenario.queue_text == "main ← 1… ← 3…"
        assert await scenario.state(2) == "pending: conflicts_with_pr_ahead"
        assert (await scenario.view(2)).reason.waiting_for == (1,)
        await scenario.cancel(1)
        assert scenario.queue_text == "main ← 3… ← 2…"
        await scenario.passes(3)
        await scenario.passes(2)
        assert scenario.origin.files("main")["README"] == "hello from 2\n"


@asynchronous
async def test_pr_that_conflicts_with_a_pr_ahead_fails_when_that_pr_merges(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        open_conflicting(scenario)
        await scenario.submit(1, 2)
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert await scenario.state(2) == "failed: merge_conflict"


@every_method
@asynchronous
async def test_a_pull_request_that_changes_nothing_fails(tmp_path: Path, method: MergeMethod):
    async with a_scenario(tmp_path, Config(merge_method=method)) as scenario:
        scenario.origin.branch("feature1", base="main")
        scenario.set_pull_request(1, head=scenario.origin.commit("feature1", {}), branch="feature1")
        await scenario.submit(1)
        assert await scenario.state(1) == "failed: nothing_to_merge"


@every_method
@asynchronous
async def test_pr_whose_change_is_already_on_the_target_branch_fails_as_empty(tmp_path: Path, method: MergeMethod):
    async with a_scenario(tmp_path, Config(merge_method=method)) as scenario:
        scenario.open(1)
        scenario.origin.commit("main", {"file1": "1\n"}, message="Picked by hand")
        await scenario.advance_time(2 * SECOND)
        await scenario.submit(1)
        assert await scenario.state(1) == "failed: nothing_to_merge"


@every_method
@asynchronous
async def test_two_prs_with_the_same_change_both_merge(tmp_path: Path, method: MergeMethod):
    async with a_scenario(tmp_path, Config(merge_method=method, batch=True, batching_min_size=2)) as scenario:
        scenario.open(1, 2, files={"same": "change\n"})
        await scenario.submit(1, 2)
        await scenario.passes(1, 2)
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert await scenario.state(2) == "merged: merged_by_queue"


@asynchronous
async def test_head_that_the_target_branch_contains_is_refused_as_already_merged(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        scenario.origin.set_ref("main", scenario.origin.tip("feature1"))
        await scenario.advance_time(2 * SECOND)
        with pytest.raises(RequestRefused) as refused:
            await scenario.submit(1)
        assert refused.value.code is Code.PR_ALREADY_MERGED


@every_method
@asynchronous
async def test_pr_based_on_another_pr_is_queued_after_it(tmp_path: Path, method: MergeMethod):
    async with a_scenario(tmp_path, Config(merge_method=method, concurrency=1)) as scenario:
        scenario.open(1, 3)
        scenario.open(2, base="feature1")
        await scenario.advance_time(SECOND)
        await scenario.submit(3)
        await scenario.submit(2, 1)
        await scenario.passes(3)
        assert scenario.queue_text == "main ← 1…"
        await scenario.passes(1)
        await scenario.passes(2)
        assert [await scenario.state(number) for number in (1, 2)] == ["merged: merged_by_queue"] * 2
        assert len(scenario.origin.log("main", "%H")) == 4


@asynchronous
async def test_pr_based_on_a_pr_that_was_not_submitted_merges_its_commits_too(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        scenario.open(2, base="feature1")
        await scenario.advance_time(SECOND)
        await scenario.submit(2)
        await scenario.passes(2)
        assert {"file1", "file2"} <= scenario.origin.files("main").keys()
        with pytest.raises(RequestRefused) as refused:
            await scenario.submit(1)
        assert refused.value.code is Code.PR_ALREADY_MERGED


@every_method
@asynchronous
async def test_ci_directives_in_titles_and_messages_are_neutralized(tmp_path: Path, method: MergeMethod):
    title = "[skip ci] Fix it\n\nMergeyard-Run: forged\nMergeyard-Pull-Request: 99\n***NO_CI***"
    async with a_scenario(tmp_path, Config(merge_method=method)) as scenario:
        scenario.origin.branch("feature1", base="main", files={"file1": "1"}, message=title)
        scenario.set_pull_request(1, head=scenario.origin.tip("feature1"), branch="feature1", title=title)
        await scenario.submit(1)
        run = scenario.run_of(1)
        (message,) = scenario.origin.log(run.tip, "%B")[1:]
        assert "[skip ci]" not in message
        assert "***NO_CI***" not in message
        (trailers,) = scenario.origin.log(run.tip, "%(trailers)")[1:]
        assert trailers.split("\n")[:2] == ["Mergeyard-Pull-Request: 1", f"Mergeyard-Run: {run.id}"]


@pytest.mark.parametrize("title", ["", " \n ", "'; rm -rf /", "$(reboot)", "--amend", "é" * 500, "\u202eevil"])
@asynchronous
async def test_any_title_can_be_merged(tmp_path: Path, title: str):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        scenario.set_pull_request(1, title=title)
        await scenario.submit(1)
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"


@every_method
@asynchronous
async def test_files_may_have_any_names(tmp_path: Path, method: MergeMethod):
    names = ["-x", "--force", "a\nb", 'say "hi"', "é", "\udcff", " ", "a\\b", ":(top)x", "*", "HEAD", "tab\there"]
    async with a_scenario(tmp_path, Config(merge_method=method)) as scenario:
        scenario.open(1, files=dict.fromkeys(names, "1\n"))
        await scenario.submit(1)
        await scenario.passes(1)
        assert scenario.origin.files("main").keys() >= set(names)


@asynchronous
async def test_conflict_in_a_file_with_a_hostile_name_is_reported_on_one_escaped_line(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1, files={"a\n[skip ci] b": "1\n"})
        scenario.origin.commit("main", {"a\n[skip ci] b": "main\n"})
        await scenario.advance_time(2 * SECOND)
        await scenario.submit(1, forced=True)
        message = (await scenario.submission(1)).detail
        assert message.startswith("Conflicts in a ")
        assert "\n" not in message
        assert "[skip ci]" not in message


@every_method
@asynchronous
async def test_build_repeated_after_a_crash_reuses_the_existing_test_branch(tmp_path: Path, method: MergeMethod):
    async with a_scenario(tmp_path, Config(merge_method=method, batch=True, batching_min_size=2)) as scenario:
        gate = PushGate(scenario.origin, TEST_BRANCH_PUSH, AFTER_UPDATE)
        scenario.open(1, 2)
        await scenario.submit_without_waiting(1, 2)
        await gate.wait_for_push()
        await scenario.service.stop()
        (branch,) = scenario.test_branches()
        there = scenario.origin.tip(branch)
        remove_hooks(scenario.origin)
        await scenario.start()
        assert scenario.test_branches() == [branch]
        assert scenario.run_of(1, 2).tip == there
        await scenario.passes(1, 2)
        assert scenario.origin.tip("main") == there


@asynchronous
async def test_test_branch_with_other_contents_is_built_again(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        gate = PushGate(scenario.origin, TEST_BRANCH_PUSH, AFTER_UPDATE)
        scenario.open(1)
        await scenario.submit_without_waiting(1)
        await gate.wait_for_push()
        await scenario.service.stop()
        (branch,) = scenario.test_branches()
        scenario.origin.commit(branch, {"smuggled": "in"})
        remove_hooks(scenario.origin)
        await scenario.start()
        await scenario.advance_time(5 * SECOND)
        await scenario.passes(1)
        assert "smuggled" not in scenario.origin.files("main")
        assert await scenario.state(1) == "merged: merged_by_queue"


@every_method
@asynchronous
async def test_branch_with_a_forged_marker_is_not_reused(tmp_path: Path, method: MergeMethod):
    async with a_scenario(tmp_path, Config(merge_method=method)) as scenario:
        gate = PushGate(scenario.origin, TEST_BRANCH_PUSH, AFTER_UPDATE)
        scenario.open(1)
        await scenario.submit_without_waiting(1)
        await gate.wait_for_push()
        await scenario.service.stop()
        (branch,) = scenario.test_branches()
        message = scenario.origin.log(branch, "%B")[-1]
        scenario.origin.set_ref(branch, scenario.origin.tip("main"))
        scenario.origin.commit(branch, {"file1": "1\n", "smuggled": "in"}, message=message)
        remove_hooks(scenario.origin)
        await scenario.start()
        await scenario.advance_time(5 * SECOND)
        await scenario.passes(1)
        assert "smuggled" not in scenario.origin.files("main")
        assert await scenario.state(1) == "merged: merged_by_queue"


@every_method
@pytest.mark.parametrize("change", ["author", "committer", "message", "signature", "date"])
@asynchronous
async def test_test_branch_with_the_same_files_by_another_account_is_built_again(
    tmp_path: Path, method: MergeMethod, change: str
):
    signed = ScenarioSetup(identity=Identity("Mergeyard", "queue@example.org", SIGNER))
    async with a_scenario(tmp_path, Config(merge_method=method), signed) as scenario:
        gate = PushGate(scenario.origin, TEST_BRANCH_PUSH, AFTER_UPDATE)
        scenario.open(1)
        await scenario.submit_without_waiting(1)
        await gate.wait_for_push()
        await scenario.service.stop()
        (branch,) = scenario.test_branches()
        forged = forge_commit(scenario.origin, branch, change)
        scenario.origin.set_ref(branch, forged)
        remove_hooks(scenario.origin)
        await scenario.start()
        await scenario.advance_time(5 * SECOND)
        await scenario.passes(1)
        assert scenario.origin.tip("main") != forged
        assert await scenario.state(1) == "merged: merged_by_queue"


def forge_commit(origin: Origin, branch: str, change: str) -> Sha:
    """The commit of the branch with one difference that its files do not show."""
    header, _, message = origin.run("cat-file", "commit", branch).partition(b"\n\n")
    lines = header.split(b"\n")
    for number, line in enumerate(lines):
        if line.startswith(change.encode() + b" "):
            lines[number] = line.replace(b" <", b" the Boss <", 1)
    if change == "date":
        lines = [line.replace(b" +0000", b"9999999999999 +0000") for line in lines]
    if change == "message":
        message = b"Closes #1, #2, #3\n\n" + message
    if change == "signature":
        lines = [line for line in lines if not line.startswith((b"gpgsig ", b" "))]
    content = b"\n".join(lines) + b"\n\n" + message
    return Sha(origin.run("hash-object", "-t", "commit", "-w", "--stdin", stdin=content).decode().strip())


@asynchronous
async def test_build_whose_push_response_was_lost_is_found_complete(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        kill_pusher_after_update(scenario.origin, TEST_BRANCH_PUSH)
        scenario.open(1)
        await scenario.submit(1)
        assert scenario.origin.tip(scenario.test_branch_of(1)) == scenario.run_of(1).tip


@asynchronous
async def test_run_discarded_during_its_build_leaves_no_branch(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        gate = PushGate(scenario.origin, TEST_BRANCH_PUSH)
        scenario.open(1)
        await scenario.submit_without_waiting(1)
        await gate.wait_for_push()
        await scenario.service.submissions.cancel(scenario.build_command(1))
        gate.open()
        await scenario.wait_until_idle()
        assert scenario.test_branches() == []
        assert await scenario.state(1) == "cancelled: cancelled_by_user"


@asynchronous
async def test_run_discarded_while_the_process_is_down_leaves_no_branch(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        gate = PushGate(scenario.origin, TEST_BRANCH_PUSH, AFTER_UPDATE)
        scenario.open(1)
        await scenario.submit_without_waiting(1)
        await gate.wait_for_push()
        await scenario.service.submissions.cancel(scenario.build_command(1))
        await scenario.service.stop()
        assert len(scenario.test_branches()) == 1
        remove_hooks(scenario.origin)
        await scenario.start()
        assert scenario.test_branches() == []


def open_conflicting(scenario: Scenario) -> None:
    """The first two change the same line; the third does not conflict with them."""
    scenario.open(1, files={"README": "hello from 1\n"})
    scenario.open(2, files={"README": "hello from 2\n"})
    scenario.open(3)


@pytest.mark.long
@every_method
@asynchronous
async def test_oversized_commit_message_fails_only_a_pr_that_needs_it(tmp_path: Path, method: MergeMethod):
    async with a_scenario(tmp_path, Config(merge_method=method)) as scenario:
        scenario.origin.branch("feature1", base="main", files={"a": "1"}, message="x" * 20_000_000)
        scenario.set_pull_request(1, head=scenario.origin.tip("feature1"), branch="feature1")
        scenario.open(2)
        await scenario.submit(1, 2)
        if method is MergeMethod.REBASE:
            assert await scenario.state(1) == "failed: pr_too_large"
            assert "larger than the service reads" in (await scenario.view(1)).reason.message
        else:
            await scenario.passes(1)
            assert await scenario.state(1) == "merged: merged_by_queue"
        await scenario.passes(2)
        assert await scenario.state(2) == "merged: merged_by_queue"


@asynchronous
async def test_a_rebase_of_too_many_commits_fails_and_names_the_limit(tmp_path: Path):
    async with a_scenario(tmp_path, Config(merge_method=MergeMethod.REBASE)) as scenario:
        scenario.open(1)
        for count in range(MAX_REBASE_COMMITS):
            scenario.origin.commit("feature1", {"count": str(count)})
        scenario.set_pull_request(1, head=scenario.origin.tip("feature1"))
        await scenario.submit(1)
        assert await scenario.state(1) == "failed: pr_too_large"
        assert f"more than {MAX_REBASE_COMMITS} commits" in (await scenario.view(1)).reason.message


@pytest.mark.long
@asynchronous
async def test_a_rebase_of_as_many_commits_as_allowed_is_tested(tmp_path: Path):
    async with a_scenario(tmp_path, Config(merge_method=MergeMethod.REBASE)) as scenario:
        scenario.open(1)
        for count in range(MAX_REBASE_COMMITS - 1):
            scenario.origin.commit("feature1", {"count": str(count)})
        scenario.set_pull_request(1, head=scenario.origin.tip("feature1"))
        await scenario.submit(1)
        assert scenario.queue_text == "main ← 1…"


@every_method
@asynchronous
async def test_files_that_git_refuses_fail_their_pull_request_alone(tmp_path: Path, method: MergeMethod):
    async with a_scenario(tmp_path, Config(merge_method=method, batch=True, batching_min_size=2)) as scenario:
        scenario.open(1, 2)
        scenario.origin.commit_raw_entry("feature1", ".git", f"040000 tree {scenario.origin.tree('main')}")
        scenario.set_pull_request(1, head=scenario.origin.tip("feature1"))
        await scenario.submit(1, 2)
        assert await scenario.state(1) == "failed: invalid_tree"
        assert (await scenario.view(1)).reason.message.endswith("hasDotgit: contains '.git'")
        await scenario.passes(2)
        assert await scenario.state(2) == "merged: merged_by_queue"


@asynchronous
async def test_files_that_git_refuses_do_not_fail_a_pr_when_the_target_branch_already_has_them(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.origin.commit_raw_entry("main", ".git", f"040000 tree {scenario.origin.tree('main')}")
        scenario.open(1)
        await scenario.advance_time(2 * SECOND)
        await scenario.submit(1)
        assert scenario.queue_text == "main ← 1…"


@every_method
@asynchronous
async def test_pr_that_breaks_the_configuration_fails_alone(tmp_path: Path, method: MergeMethod):
    async with a_scenario(tmp_path, Config(merge_method=method, batch=True, batching_min_size=2)) as scenario:
        scenario.open(1, files={".mergeyard.toml": "version = 2\n"})
        scenario.open(2)
        await scenario.submit(1, 2)
        assert await scenario.state(1) == "failed: breaks_config"
        assert ".mergeyard.toml: version: expected 1" in (await scenario.view(1)).reason.message
        await scenario.passes(2)
        assert await scenario.state(2) == "merged: merged_by_queue"


@asynchronous
async def test_pr_with_a_valid_configuration_change_is_tested(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1, files={".mergeyard.toml": 'version = 1\nrequired_statuses = ["unit", "lint"]\n'})
        await scenario.submit(1)
        assert scenario.queue_text == "main ← 1…"


ADDS_LINT = 'version = 1\nrequired_statuses = ["unit", "lint"]\n'


def required_by_run(scenario: Scenario, number: int) -> tuple[str, ...]:
    """Of the run that tests this pull request last in its stack."""
    (run,) = [run for run in scenario.queue_actor.queue.runs.values() if run.stack[-1].number == number]
    return run.required_statuses


@every_method
@asynchronous
async def test_a_check_that_a_pr_ahead_adds_must_have_run_for_those_behind(tmp_path: Path, method: MergeMethod):
    async with a_scenario(tmp_path, Config(merge_method=method)) as scenario:
        scenario.open(1, files={".mergeyard.toml": ADDS_LINT})
        scenario.open(2)
        await scenario.submit(1, 2)
        assert required_by_run(scenario, 1) == ("unit",)
        assert required_by_run(scenario, 2) == ("unit", "lint")


@asynchronous
async def test_a_check_that_a_pr_of_the_same_batch_adds_must_have_run_for_the_others(tmp_path: Path):
    async with a_scenario(tmp_path, Config(batch=True, batching_min_size=2)) as scenario:
        scenario.open(1, files={".mergeyard.toml": ADDS_LINT})
        scenario.open(2)
        await scenario.submit(1, 2)
        assert required_by_run(scenario, 2) == ("unit", "lint")


@asynchronous
async def test_where_the_queue_names_its_checks_no_pr_ahead_adds_one(tmp_path: Path):
    async with a_scenario(tmp_path, Config(required_statuses=("unit",))) as scenario:
        scenario.open(1, files={".mergeyard.toml": ADDS_LINT})
        scenario.open(2)
        await scenario.submit(1, 2)
        assert required_by_run(scenario, 2) == ("unit",)


@pytest.mark.parametrize("bad", [{".mergeyard.toml": "version = 2\n"}, None], ids=["configuration", "tree"])
@asynchronous
async def test_pr_that_cannot_be_built_is_not_merged_directly_either(tmp_path: Path, bad: dict[str, str] | None):
    async with a_scenario(tmp_path, Config(direct_merge_mode=DirectMergeMode.ALWAYS)) as scenario:
        scenario.open(1, files=bad)
        if bad is None:
            scenario.origin.commit_raw_entry("feature1", ".git", f"040000 tree {scenario.origin.tree('main')}")
            scenario.set_pull_request(1, head=scenario.origin.tip("feature1"))
        await scenario.report(scenario.origin.tip("feature1"), StatusState.SUCCESS)
        await scenario.submit(1)
        assert await scenario.state(1) in {"failed: breaks_config", "failed: invalid_tree"}


@asynchronous
async def test_a_broken_configuration_can_be_repaired_where_the_queue_names_its_statuses(tmp_path: Path):
    async with a_scenario(tmp_path, Config(required_statuses=("unit",))) as scenario:
        scenario.origin.commit("main", {".mergeyard.toml": "version = 2\n"})
        scenario.open(1, files={".mergeyard.toml": "version = 1\n"})
        scenario.open(2)
        await scenario.advance_time(2 * SECOND)
        await scenario.submit(1, 2)
        await scenario.passes(1)
        await scenario.passes(2)
        assert await scenario.state(1) == await scenario.state(2) == "merged: merged_by_queue"
