"""From an opened pull request to a merged one, on a real Gitea, with and without webhooks."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.forge.gitea_admin import BOT, GiteaAdmin
from tests.forge.mergeyard_server import BAD, CHECK, HOST, MergeyardServer, a_mergeyard_server
from tests.forge.project import Project
from tests.support.polling import eventually


@pytest.fixture(params=["webhooks on", "webhooks off"])
def mergeyard(
    request: pytest.FixtureRequest, admin: GiteaAdmin, project: Project, tmp_path: Path
) -> Iterator[MergeyardServer]:
    with a_mergeyard_server(tmp_path, admin, project) as mergeyard:
        if request.param == "webhooks on":
            mergeyard.enable_webhooks()
        yield mergeyard


ONLY_QUEUE: dict[str, Any] = {
    "enable_push_whitelist": True,
    "push_whitelist_usernames": [BOT],
    "enable_merge_whitelist": True,
    "merge_whitelist_usernames": [BOT],
}


def test_pr_merges_only_with_the_approval_that_the_rule_requires(admin: GiteaAdmin, project: Project, tmp_path: Path):
    project.add_collaborator("grace", "write")
    with a_mergeyard_server(tmp_path, admin, project, required_approvals=1, **ONLY_QUEUE) as mergeyard:
        mergeyard.enable_webhooks()
        approved, withdrawn = project.open("approved", {"1.txt": "1"}), project.open("withdrawn", {"2.txt": "1"})
        mergeyard.submit(approved)
        wait_for_reason(mergeyard, approved, "Waiting for a review (0 of 1 approvals).")
        project.review(approved, "grace", "APPROVED")
        mergeyard.wait_for_state(approved, "merged")
        mergeyard.ci.is_held = True
        approval = project.review(withdrawn, "grace", "APPROVED")
        mergeyard.submit(withdrawn)
        mergeyard.wait_for_state(withdrawn, "testing")
        project.dismiss(withdrawn, approval)
        mergeyard.ci.is_held = False
        wait_for_reason(mergeyard, withdrawn, "Waiting for a review (0 of 1 approvals).")
        assert not project.pull_request(withdrawn)["merged"]
        assert "2.txt" not in project.origin.files(project.fetch("main"))


def wait_for_reason(mergeyard: MergeyardServer, number: int, message: str) -> None:
    """Waits until the pull request is not ready because it lacks a review."""

    def describe() -> dict[str, Any]:
        return mergeyard.submission(number)

    expected = {"code": "waiting_for_review", "message": message}
    eventually(lambda: {key: describe()["reason"][key] for key in expected} == expected, describe=describe)
    assert describe()["state"] == "not_ready"


def test_only_the_queue_can_change_a_branch_whose_allow_lists_name_it_alone(
    admin: GiteaAdmin, project: Project, tmp_path: Path
):
    project.add_collaborator("ada", "write")
    project.add_collaborator("grace", "admin")
    with a_mergeyard_server(tmp_path, admin, project, **ONLY_QUEUE) as mergeyard:
        number = project.open("topic", {"1.txt": "1"})
        project.wait_until_checked(number)
        project.report(project.origin.tip("topic"), CHECK, "success")
        before = project.fetch("main")
        project.origin.set_ref("direct", before)
        direct = project.origin.commit("direct", {"direct.txt": "1"})
        for user in ("ada", "grace", project.owner):
            assert not project.push_as(user, direct, "main")
            path, body = f"/repos/{project.owner}/{project.name}/pulls/{number}/merge", {"do": "merge", "Do": "merge"}
            assert admin.send_request("POST", path, body | {"force_merge": True}, user).status_code == 405
        assert project.fetch("main") == before
        checked = mergeyard.command("host", "check", HOST, "--repo", f"{project.owner}/{project.name}").stdout
        assert f"✓ Only {BOT} can push to main and merge into it, so the queue is mandatory." in checked
        mergeyard.submit(number)
        mergeyard.wait_for_state(number, "merged")
        assert "1.txt" in project.origin.files(project.fetch("main"))


def test_prs_submitted_in_three_ways_merge_as_tested(mergeyard: MergeyardServer):
    project = mergeyard.project
    numbers = [project.open(f"topic-{index}", {f"{index}.txt": "1"}) for index in range(3)]
    mergeyard.submit(numbers[0])
    command = project.comment(numbers[1], project.owner, "/merge --priority high")
    project.label(numbers[2], "merge-queue")
    for number in numbers:
        merged = mergeyard.wait_for_state(number, "merged")
        assert project.pull_request(number)["merged"]
        assert project.pull_request(number)["merge_commit_sha"] == merged["mergedSha"]
        run = mergeyard.post("getMergeQueueTestingDetails", testRunId=merged["verifiedByTestRun"])
        assert [check["context"] for check in run["statusChecks"]] == [CHECK]
        eventually(lambda number=number: "🎉 Merged" in mergeyard.status_comment(number))
        head = project.pull_request(number)["head"]["sha"]
        eventually(lambda head=head: project.statuses(head).get("mergeyard") == "success")
    assert {"0.txt", "1.txt", "2.txt"} <= set(project.origin.files(project.fetch("main")))
    assert project.reactions(command) == ["+1"]
    assert mergeyard.submission(numbers[1])["priorityName"] == "high"
    eventually(lambda: project.labels(numbers[2]) == [])


def test_failed_pr_gets_a_comment_with_the_reason_and_others_merge(mergeyard: MergeyardServer):
    project = mergeyard.project
    good, bad = project.open("good", {"good.txt": "1"}), project.open("bad", {BAD: "1"})
    for number in good, bad:
        mergeyard.submit(number)
    mergeyard.wait_for_state(good, "merged")
    assert mergeyard.wait_for_state(bad, "failed")["reason"]["code"] == "test_run_failed"
    eventually(lambda: f"- Failed: [{CHECK}](https://ci.example.com/1)" in mergeyard.status_comment(bad))
    assert BAD not in project.origin.files(project.fetch("main"))
    assert not project.pull_request(bad)["merged"]


def test_pr_with_a_conflict_is_not_merged_and_has_a_reason(mergeyard: MergeyardServer):
    project = mergeyard.project
    number = project.open("topic", {"a.txt": "mine"})
    project.commit("main", {"a.txt": "theirs"})
    mergeyard.submit(number)
    eventually(lambda: mergeyard.submission(number)["reason"]["code"] in {"not_mergeable", "merge_conflict"})
    assert not project.pull_request(number)["merged"]


def test_command_of_a_user_without_write_access_is_refused(mergeyard: MergeyardServer):
    project = mergeyard.project
    number = project.open("topic", {"b.txt": "1"})
    command = project.comment(number, "eve", "/merge")
    eventually(lambda: project.reactions(command) == ["-1"])
    eventually(lambda: any("Only users with write access" in text for text in project.comments(number)))
    assert mergeyard.submission(number)["code"] == "pr_not_submitted"


def test_command_is_executed_once_although_the_server_is_killed(mergeyard: MergeyardServer):
    project = mergeyard.project
    project.label(project.open("other", {"c.txt": "1"}), "bug")
    number = project.open("topic", {"d.txt": "1"})
    command = project.comment(number, project.owner, "/merge")
    eventually(lambda: project.reactions(command))
    mergeyard.server.kill()
    project.comment(number, project.owner, "/merge status")
    mergeyard.server.start()
    mergeyard.wait_for_state(number, "merged")
    eventually(lambda: len(project.comments(number)) == 4, describe=lambda: project.comments(number))


def test_host_check_reports_a_missing_permission(mergeyard: MergeyardServer):
    project = mergeyard.project
    output = mergeyard.command("host", "check", HOST, "--repo", f"{project.owner}/{project.name}").stdout
    assert "✓ The account can push." in output
    project.add_collaborator(BOT, "read")
    refused = mergeyard.command("host", "check", HOST, "--repo", f"{project.owner}/{project.name}")
    assert refused.returncode == 1
    assert "✗" in refused.stdout
