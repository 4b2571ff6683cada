"""People push, close, redraw and rewind while the queue tests: what they did counts, and nobody is blamed for it."""

import pytest

from tests.e2e.conftest import Build
from tests.support.api import Refused


@pytest.mark.parametrize(
    ("act", "options", "reason"),
    [
        ("update", (), "pr_pushed"),
        pytest.param("close", (), "pr_closed", marks=pytest.mark.long),
        pytest.param("update", ("--draft",), "pr_converted_to_draft", marks=pytest.mark.long),
        pytest.param("update", ("--base", "other"), "pr_base_changed", marks=pytest.mark.long),
    ],
)
def test_whoever_changes_a_pr_under_test_takes_it_out(build: Build, act: str, options: tuple[str, ...], reason: str):
    premises = build()
    premises.ci.working = False
    changed, innocent = premises.open_pr({"a.txt": "1"}), premises.open_pr({"b.txt": "1"})
    premises.line_up(changed, innocent)
    premises.wait_for("testing", changed, innocent)
    if reason == "pr_pushed":
        premises.origin.commit("topic-1", {"a.txt": "2"})
    premises.pr_command(act, changed, *options)
    premises.eventually(lambda: premises.reason(changed) == reason)
    premises.ci.working = True
    assert premises.wait_for_end(changed, innocent) == ["cancelled", "merged"]
    assert set(premises.origin.files("main")) == {"README", "b.txt"}


def test_after_a_push_it_can_be_submitted_again_and_the_new_head_lands(build: Build):
    premises = build()
    premises.ci.working = False
    number = premises.open_pr({"a.txt": "1"})
    first = premises.submit(number)["id"]
    premises.wait_for("testing", number)
    premises.origin.commit("topic-1", {"a.txt": "2"})
    premises.pr_command("update", number)
    premises.wait_for("cancelled", number)
    premises.ci.working = True
    assert premises.submit(number)["id"] != first
    premises.wait_for("merged", number)
    assert premises.origin.files("main")["a.txt"] == "2"


def test_when_somebody_pushes_to_the_target_everything_is_tested_again_on_the_new_tip(build: Build):
    premises = build()
    premises.ci.working = False
    number = premises.open_pr({"a.txt": "1"})
    premises.submit(number)
    premises.wait_for("testing", number)
    outdated = premises.branch_of(number)
    pushed = premises.origin.commit("main", {"b.txt": "1"})
    premises.eventually(lambda: "target_branch_moved" in premises.reasons(number))
    premises.wait_for("testing", number)
    premises.ci.send(outdated, "unit", "success")
    premises.ci.send(outdated, "lint", "success")
    assert premises.run_of(number)["baseSha"] == pushed
    premises.ci.working = True
    premises.wait_for("merged", number)
    assert set(premises.origin.files("main")) == {"README", "a.txt", "b.txt"}


def test_what_was_taken_off_the_target_does_not_come_back_through_the_queue(build: Build):
    premises = build()
    before = premises.origin.tip("main")
    leaked = premises.open_pr({"secret": "1"})
    premises.submit(leaked)
    premises.wait_for("merged", leaked)
    heir = premises.open_pr({"a.txt": "1"}, upon="main")
    premises.wait_for_cleanliness()
    premises.origin.set("main", before)
    premises.submit(heir)
    assert premises.wait_for_end(heir) == ["failed"]
    assert premises.reason(heir) == "contains_removed_commit"
    assert set(premises.origin.files("main")) == {"README"}


def test_one_that_is_merged_or_closed_already_is_not_taken(build: Build):
    premises = build()
    merged, closed = premises.open_pr({"a.txt": "1"}), premises.open_pr({"b.txt": "1"})
    premises.submit(merged)
    premises.wait_for("merged", merged)
    premises.pr_command("close", closed)
    for number, code in ((merged, "pr_already_merged"), (closed, "pr_closed"), (99, "pr_not_found")):
        with pytest.raises(Refused) as refused:
            premises.submit(number)
        assert refused.value.code == code


def test_a_test_branch_that_somebody_deleted_lands_nothing_unknown(build: Build):
    premises = build()
    premises.ci.working = False
    number = premises.open_pr({"a.txt": "1"})
    premises.submit(number)
    premises.wait_for("testing", number)
    branch, tip = next(iter(premises.ci.branches().items()))
    premises.origin.remove(branch)
    premises.ci.report(tip, "success")
    premises.ci.working = True
    assert premises.wait_for_end(number) == ["cancelled"]
    assert premises.reason(number) == "landing_unknown"
