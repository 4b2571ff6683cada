"""From an opened pull request to a merged one, on a Gitea that really runs, with and without its webhooks."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.forge.people import BOT, People
from tests.forge.project import Project
from tests.forge.yard import BAD, CHECK, HOST, ForgeYard, a_forge_yard
from tests.support.patience import eventually


@pytest.fixture(params=["webhooks on", "webhooks off"])
def yard(request: pytest.FixtureRequest, people: People, project: Project, tmp_path: Path) -> Iterator[ForgeYard]:
    with a_forge_yard(tmp_path, people, project) as yard:
        if request.param == "webhooks on":
            yard.hear()
        yield yard


def test_submitted_in_three_ways_all_are_merged_as_they_were_tested(yard: ForgeYard):
    project = yard.project
    numbers = [project.open(f"topic-{place}", {f"{place}.txt": "1"}) for place in range(3)]
    yard.submit(numbers[0])
    asked = project.comment(numbers[1], project.owner, "/merge --priority high")
    project.label(numbers[2], "merge-queue")
    for number in numbers:
        merged = yard.comes_to(number, "merged")
        assert project.pull(number)["merged"]
        assert project.pull(number)["merge_commit_sha"] == merged["mergedSha"]
        run = yard.ask("getMergeQueueTestingDetails", testRunId=merged["verifiedByTestRun"])
        assert [check["context"] for check in run["statusChecks"]] == [CHECK]
        eventually(lambda number=number: "🎉 Merged" in yard.the_comment(number))
        head = project.pull(number)["head"]["sha"]
        eventually(lambda head=head: project.statuses(head).get("mergeyard") == "success")
    assert {"0.txt", "1.txt", "2.txt"} <= set(project.origin.files(project.fetch("main")))
    assert project.reactions(asked) == ["+1"]
    assert yard.pull(numbers[1])["priorityName"] == "high"
    eventually(lambda: project.labels(numbers[2]) == [])


def test_one_that_fails_is_told_why_and_the_others_merge(yard: ForgeYard):
    project = yard.project
    good, bad = project.open("good", {"good.txt": "1"}), project.open("bad", {BAD: "1"})
    for number in good, bad:
        yard.submit(number)
    yard.comes_to(good, "merged")
    assert yard.comes_to(bad, "failed")["reason"]["code"] == "test_run_failed"
    eventually(lambda: f"- Failed: [{CHECK}](https://ci.example.com/1)" in yard.the_comment(bad))
    assert BAD not in project.origin.files(project.fetch("main"))
    assert not project.pull(bad)["merged"]


def test_one_that_conflicts_waits_and_says_so(yard: ForgeYard):
    project = yard.project
    number = project.open("topic", {"a.txt": "mine"})
    project.commit("main", {"a.txt": "theirs"})
    yard.submit(number)
    eventually(lambda: yard.pull(number)["reason"]["code"] in {"not_mergeable", "merge_conflict"})
    assert not project.pull(number)["merged"]


def test_only_writers_are_obeyed(yard: ForgeYard):
    project = yard.project
    number = project.open("topic", {"b.txt": "1"})
    asked = project.comment(number, "eve", "/merge")
    eventually(lambda: project.reactions(asked) == ["-1"])
    eventually(lambda: any("Only people who may write" in text for text in project.comments(number)))
    assert yard.pull(number)["code"] == "pr_not_submitted"


def test_a_command_is_obeyed_once_although_the_server_is_killed(yard: ForgeYard):
    project = yard.project
    project.label(project.open("other", {"c.txt": "1"}), "bug")
    number = project.open("topic", {"d.txt": "1"})
    asked = project.comment(number, project.owner, "/merge")
    eventually(lambda: project.reactions(asked))
    yard.server.kill()
    project.comment(number, project.owner, "/merge status")
    yard.server.start()
    yard.comes_to(number, "merged")
    eventually(lambda: len(project.comments(number)) == 4, but=lambda: project.comments(number))


def test_the_host_check_tells_what_is_missing(yard: ForgeYard):
    project = yard.project
    told = yard.command("host", "check", HOST, "--repo", f"{project.owner}/{project.name}").stdout
    assert "✓ The account may push." in told
    project.admit(BOT, "read")
    refused = yard.command("host", "check", HOST, "--repo", f"{project.owner}/{project.name}")
    assert refused.returncode == 1
    assert "✗" in refused.stdout
