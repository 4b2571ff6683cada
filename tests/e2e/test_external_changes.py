"""External changes during tests: pushes, closing, drafts, rewinds of the target branch. No other pull request fails."""

import pytest

from tests.e2e.conftest import StartEnvironment
from tests.support.api_client import ApiRefused


@pytest.mark.long
@pytest.mark.parametrize(
    ("act", "options", "reason"),
    [
        ("update", (), "pr_pushed"),
        pytest.param("close", (), "pr_closed", marks=pytest.mark.long),
        pytest.param("update", ("--draft",), "pr_converted_to_draft", marks=pytest.mark.long),
        pytest.param("update", ("--base", "other"), "pr_base_changed", marks=pytest.mark.long),
    ],
)
def test_changing_a_tested_pr_removes_it(start_env: StartEnvironment, act: str, options: tuple[str, ...], reason: str):
    env = start_env()
    env.ci.enabled = False
    changed, other = env.open_pr({"a.txt": "1"}), env.open_pr({"b.txt": "1"})
    env.submit_in_order(changed, other)
    env.wait_for("testing", changed, other)
    if reason == "pr_pushed":
        env.origin.commit("topic-1", {"a.txt": "2"})
    env.pr_command(act, changed, *options)
    env.eventually(lambda: env.reason(changed) == reason)
    env.ci.enabled = True
    assert env.wait_for_end(changed, other) == ["cancelled", "merged"]
    assert set(env.origin.files("main")) == {"README", "b.txt"}


@pytest.mark.long
def test_pushed_pr_can_be_submitted_again_and_its_new_head_lands(start_env: StartEnvironment):
    env = start_env()
    env.ci.enabled = False
    number = env.open_pr({"a.txt": "1"})
    first = env.submit(number)["id"]
    env.wait_for("testing", number)
    env.origin.commit("topic-1", {"a.txt": "2"})
    env.pr_command("update", number)
    env.wait_for("cancelled", number)
    env.ci.enabled = True
    assert env.submit(number)["id"] != first
    env.wait_for("merged", number)
    assert env.origin.files("main")["a.txt"] == "2"


@pytest.mark.long
def test_after_a_push_to_the_target_branch_everything_is_tested_again_on_the_new_tip(start_env: StartEnvironment):
    env = start_env()
    env.ci.enabled = False
    number = env.open_pr({"a.txt": "1"})
    env.submit(number)
    env.wait_for("testing", number)
    outdated = env.test_branch_tip(number)
    pushed = env.origin.commit("main", {"b.txt": "1"})
    env.eventually(lambda: "target_branch_moved" in env.reasons(number))
    env.wait_for("testing", number)
    env.ci.send(outdated, "unit", "success")
    env.ci.send(outdated, "lint", "success")
    assert env.run_of(number)["baseSha"] == pushed
    env.ci.enabled = True
    env.wait_for("merged", number)
    assert set(env.origin.files("main")) == {"README", "a.txt", "b.txt"}


@pytest.mark.long
def test_commit_removed_from_the_target_branch_does_not_come_back(start_env: StartEnvironment):
    env = start_env()
    before = env.origin.tip("main")
    leaked = env.open_pr({"secret": "1"})
    env.submit(leaked)
    env.wait_for("merged", leaked)
    dependent = env.open_pr({"a.txt": "1"}, base="main")
    env.wait_until_clean()
    env.origin.set_ref("main", before)
    env.submit(dependent)
    assert env.wait_for_end(dependent) == ["failed"]
    assert env.reason(dependent) == "contains_removed_commit"
    assert set(env.origin.files("main")) == {"README"}


@pytest.mark.long
def test_merged_closed_and_unknown_prs_are_refused(start_env: StartEnvironment):
    env = start_env()
    merged, closed = env.open_pr({"a.txt": "1"}), env.open_pr({"b.txt": "1"})
    env.submit(merged)
    env.wait_for("merged", merged)
    env.pr_command("close", closed)
    for number, code in ((merged, "pr_already_merged"), (closed, "pr_closed"), (99, "pr_not_found")):
        with pytest.raises(ApiRefused) as refused:
            env.submit(number)
        assert refused.value.code == code


@pytest.mark.long
def test_deleted_test_branch_makes_the_landing_outcome_unknown(start_env: StartEnvironment):
    env = start_env()
    env.ci.enabled = False
    number = env.open_pr({"a.txt": "1"})
    env.submit(number)
    env.wait_for("testing", number)
    branch, tip = next(iter(env.ci.test_branches().items()))
    env.origin.delete_ref(branch)
    env.ci.report(tip, "success")
    env.ci.enabled = True
    assert env.wait_for_end(number) == ["cancelled"]
    assert env.reason(number) == "landing_unknown"
