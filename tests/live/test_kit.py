"""The kit runs on two fakes, one of which plays the real Git host: then every answer must be equal."""

import socket
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.live import kit
from tests.live.__main__ import main
from tests.live.fakes.gitea import AdministeredGitea, fake_gitea
from tests.live.fakes.github import AdministeredGithub
from tests.live.github import LiveGithub
from tests.live.hosts import Access
from tests.live.report import DIFFERENT, Report, to_json, to_markdown
from tests.live.stage import Observation, Stage
from tests.support.forges.faults import ALWAYS, AddsHeaders

WITH_APP = Access(web_url="", api_url="", owner="", token="", second_token="a second account", app_id="an App")
ALONE = Access(web_url="", api_url="", owner="", token="")
PREMIUM = Access(web_url="", api_url="", owner="", token="", second_token="a second account", is_premium=True)
FREE = Access(web_url="", api_url="", owner="", token="", second_token="a second account")
WITHOUT_RULES = Access(web_url="", api_url="", owner="", token="", second_token="a second account", is_free=True)


def run(kind: str, folder: Path, like: Access, *steps: str, **fake: Any) -> Report:
    """Runs the kit against a fake of this kind as if it were the real Git host."""
    folder.mkdir(exist_ok=True)
    with kit.KINDS[kind].fake(folder, like, **fake) as access:
        report, secrets = kit.run(kit.Plan(kind=kind, access=access, steps=steps), show=lambda _: None)
    for text in (to_markdown(report, secrets), to_json(report, secrets)):
        assert not [secret for secret in secrets if secret in text]
    return report


def outcomes(report: Report) -> dict[str, str]:
    return {step.title: step.outcome for step in report.steps if step.outcome != "run"}


def test_the_first_merge_is_equal_on_two_fakes(tmp_path: Path):
    report = run("github", tmp_path / "github", FREE, "merge")
    assert (report.problems, outcomes(report)) == ([], {})
    assert [step.title for step in report.steps][-2:] == ["Merge the tested commit", kit.CLOSING]
    assert len(report.comparisons) >= 15
    assert report.cleanup.endswith("was deleted.")
    assert report.verdict.endswith("Nothing needs attention.")


@pytest.mark.long
def test_another_answer_of_the_git_host_is_in_the_report(tmp_path: Path):
    def plant(github: AdministeredGithub) -> None:
        github.faults.plan(AddsHeaders({"x-ratelimit-mood": "good"}), "/repos/[^/]+/[^/]+$", times=ALWAYS)

    report = run("github", tmp_path / "github", FREE, "limits", change=plant)
    assert [one.name for one in report.comparisons if one.result == DIFFERENT] == ["headers about limits"]
    (problem,) = report.problems
    assert "headers about limits: the fake answers differently" in problem
    assert "Fake: `" in to_markdown(report, [])


def test_plan_without_rules_is_equal_on_two_fakes(tmp_path: Path):
    report = run("github", tmp_path / "github", WITHOUT_RULES, "drafts", "pushes")
    assert report.problems == []
    assert outcomes(report) == {"Pushes to a protected branch": "not run"}
    assert "free plan" in next(step.why for step in report.steps if step.outcome == "not run")
    answers = {one.name: one.real for one in report.comparisons}
    assert answers["a rule with a required check"]["status"] == answers["the rules of main"]["status"] == 403
    assert answers["the draft of the test branch"]["[].draft"] == [False]


def test_spent_budget_needs_attention(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(kit, "MAX_REQUESTS", 20)
    with fake_gitea(tmp_path) as access:
        (tmp_path / "token").write_text(access.token)
        where = ["--url", access.web_url, "--owner", access.owner, "--token-file", "token"]
        assert main(["gitea", *where, "--steps", "merge"]) == 1
    shown = capsys.readouterr().out
    assert "The step “Merge the tested commit” failed: the limit of 20 requests is reached." in shown
    assert "Nothing needs attention" not in shown


def ruin(stage: Stage) -> Iterator[Observation]:
    """Leaves all that a step can change, and fails."""
    host = stage.host
    stage.submit(stage.open("left"))
    changes = {"landing": "provider_merge", "mergeMethod": "squash", "headBranchFallback": "close"}
    stage.queue.post("updateQueue", **changes, createPrsForTestingBranches=True)
    host.unprotect()
    if isinstance(host, LiveGithub):
        host.write_ruleset(1, mode="", strict=True).must_succeed()
        host.protect_classic().must_succeed()
    raise ValueError("a surprise")
    yield stage.saw("", None)


def merge_next(stage: Stage) -> Iterator[Observation]:
    yield stage.saw("the rules after it", stage.host.read_rules(), "rules", "the next steps rely on it")
    number = stage.open("next")
    stage.submit(number)
    stage.test(number)
    stage.wait_for_state(number, "merged")
    parents = stage.host.origin.run("rev-list", "--parents", "-n1", stage.host.fetch("main")).split()[1:]
    yield stage.saw("how the next one merged", len(parents), asked="git fetch main", matters="it must not be squashed")


@pytest.mark.parametrize(
    "kind",
    ["github", pytest.param("gitlab", marks=pytest.mark.long), pytest.param("gitea", marks=pytest.mark.long)],
)
def test_failed_step_does_not_ruin_the_next_one(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(kit.KINDS[kind].steps, "ruin", ("Ruin", ruin))
    monkeypatch.setitem(kit.KINDS[kind].steps, "next", ("Merge the next one", merge_next))
    report = run(kind, tmp_path / kind, FREE, "ruin", "next")
    assert report.problems == ["The step “Ruin” failed: ValueError: a surprise."]
    answers = {one.name: one.real for one in report.comparisons}
    assert answers["the rules after it"] == answers["the rules of main"]
    assert answers["how the next one merged"] == 2


def test_error_of_the_fake_does_not_discard_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    @contextmanager
    def break_at_end(root: Path, like: Access) -> Generator[Access]:
        with fake_gitea(root, like) as access:
            yield access
            raise AssertionError("the fake got a request that the Git host does not describe")

    monkeypatch.setitem(kit.KINDS, "gitea", replace(kit.KINDS["gitea"], fake=break_at_end))
    with fake_gitea(tmp_path) as access:
        report, _ = kit.run(kit.Plan(kind="gitea", access=access, steps=("merge",)), show=lambda _: None)
    assert outcomes(report) == {kit.FAKE: "failed"}
    (problem,) = report.problems
    assert problem.endswith("a request that the Git host does not describe.")
    assert len(report.comparisons) >= 15


@pytest.mark.long
def test_git_host_sends_webhooks_to_a_public_address(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    seen = list[AdministeredGitea]()
    with fake_gitea(tmp_path, change=seen.append) as access:
        plan = kit.Plan(kind="gitea", access=access, steps=("fail",), public_url=f"http://127.0.0.1:{port}", port=port)
        report, _ = kit.run(plan, show=lambda _: None)
        (gitea,) = seen
        assert report.problems == []
        assert {one.status for one in gitea.deliveries.log} & {200, 202}


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "like", "not_run"),
    [
        ("github", WITH_APP, {"A suspended App"}),
        (
            "github",
            WITHOUT_RULES,
            {
                *("A suspended App", "What each account sees of the rules", "Pushes to a protected branch"),
                *("A workflow file without the permission", "Who reported a check", "The token of the App"),
                "Merges in a row, and one that is behind",
            },
        ),
        (
            "github",
            ALONE,
            {
                *("A suspended App", "Merge a pull request of a fork", "What each account sees of the rules"),
                *("A workflow file without the permission", "Who reported a check", "The token of the App"),
            },
        ),
        ("gitlab", FREE, set[str]()),
        ("gitlab", PREMIUM, set[str]()),
        ("gitea", FREE, set[str]()),
    ],
    ids=["github with an App", "github free", "github with one token", "gitlab", "gitlab premium", "gitea"],
)
def test_the_whole_story_is_equal_on_two_fakes(kind: str, like: Access, not_run: set[str], tmp_path: Path):
    report = run(kind, tmp_path / kind, like)
    assert report.problems == []
    assert outcomes(report) == dict.fromkeys(not_run, "not run")
    assert report.requests < kit.MAX_REQUESTS
