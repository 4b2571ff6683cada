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
from tests.live.client import Budget
from tests.live.fakes.gitea import fake_gitea
from tests.live.fakes.github import AdministeredGithub
from tests.live.gitea import LiveGitea
from tests.live.github import LiveGithub
from tests.live.hosts import Access
from tests.live.report import DIFFERENT, EQUAL, Report, to_json, to_markdown
from tests.live.scratch import open_stage
from tests.live.stage import LOCAL, Observation, Stage, run_step
from tests.live.story import STORY
from tests.support.forges.faults import ALWAYS, AddsHeaders

WITH_APP = Access(web_url="", api_url="", owner="", token="", second_token="a second account", app_id="an App")
ALONE = Access(web_url="", api_url="", owner="", token="")
PREMIUM = Access(web_url="", api_url="", owner="", token="", second_token="a second account", is_premium=True)
FREE = Access(web_url="", api_url="", owner="", token="", second_token="a second account")
REVIEWS = ("Requested changes and a dismissed approval", "An open conversation", "A code owner")
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


def test_a_queue_is_created_and_a_pull_request_merged_at_a_fake(tmp_path: Path):
    (tmp_path / "kit").mkdir()
    with fake_gitea(tmp_path / "fake") as access:
        host = LiveGitea(access, "scratch", tmp_path / "kit", Budget(kit.MAX_REQUESTS, 60, 0))
        with open_stage(host, tmp_path / "kit", LOCAL, "0a1b2c3d", keep=False) as (stage, _):
            results = [run_step(stage, *STORY[name]) for name in kit.ALWAYS]
    assert [(one.failed, one.not_measured) for one in results] == [("", "")] * 2
    assert len(results[-1].observations) >= 10
    assert host.cleanup.endswith("was deleted.")


@pytest.mark.long
def test_another_answer_of_the_git_host_is_in_the_report(tmp_path: Path):
    def plant(github: AdministeredGithub) -> None:
        github.faults.plan(AddsHeaders({"x-ratelimit-mood": "good"}), "/repos/[^/]+/[^/]+$", times=ALWAYS)

    report = run("github", tmp_path / "github", FREE, "limits", change=plant)
    assert [one.name for one in report.comparisons if one.result == DIFFERENT] == ["headers about limits"]
    (problem,) = report.problems
    assert "headers about limits: the fake answers differently" in problem
    assert "Fake: `" in to_markdown(report, [])


@pytest.mark.long
def test_plan_without_rules_is_equal_on_two_fakes(tmp_path: Path):
    report = run("github", tmp_path / "github", WITHOUT_RULES, "drafts", "pushes")
    assert report.problems == []
    assert outcomes(report) == {"Pushes to a protected branch": "not measured"}
    assert "free plan" in next(step.why for step in report.steps if step.outcome == "not measured")
    answers = {one.name: one.real for one in report.comparisons}
    assert answers["a rule with a required check"]["status"] == answers["the rules of main"]["status"] == 403
    assert answers["the draft of the test branch"]["[].draft"] == [False]


@pytest.mark.long
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


@pytest.mark.long
@pytest.mark.parametrize("kind", ["github", "gitlab", "gitea"])
def test_failed_step_does_not_ruin_the_next_one(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(kit.KINDS[kind].steps, "ruin", ("Ruin", ruin))
    monkeypatch.setitem(kit.KINDS[kind].steps, "next", ("Merge the next one", merge_next))
    report = run(kind, tmp_path / kind, FREE, "ruin", "next")
    assert report.problems == ["The step “Ruin” failed: ValueError: a surprise."]
    answers = {one.name: one.real for one in report.comparisons}
    assert answers["the rules after it"] == answers["the rules of main"]
    assert answers["how the next one merged"] == 2


@pytest.mark.long
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
@pytest.mark.parametrize(("kind", "steps"), [("github", ("delay", "cost")), ("gitlab", ("delay",))])
def test_webhooks_to_a_public_address_are_recorded(kind: str, steps: tuple[str, ...], tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    with kit.KINDS[kind].fake(tmp_path, FREE) as access:
        plan = kit.Plan(kind=kind, access=access, steps=steps, public_url=f"http://127.0.0.1:{port}", port=port)
        report, _ = kit.run(plan, show=lambda _: None)
    assert report.problems == []
    answers = {one.name: (one.result, one.real) for one in report.comparisons}
    result, order = answers["the order of the webhooks about it"]
    assert (result, sorted(order)) == (EQUAL, ["closed", "push"])
    assert answers["seconds until each webhook arrived"][1].keys() == {"closed", "push"}
    assert kind == "gitlab" or answers["the cost of one test run"][1]["Mergeyard hears of them by"] == "webhooks"


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "like", "not_measured"),
    [
        ("github", WITH_APP, {"A suspended App"}),
        (
            "github",
            WITHOUT_RULES,
            {
                *("A suspended App", "What each account sees of the rules", "Pushes to a protected branch"),
                *("A workflow file without the permission", "Who reported a check", "The token of the App"),
                *("Merges in a row, and one that is behind", *REVIEWS),
            },
        ),
        (
            "github",
            ALONE,
            {
                *("A suspended App", "Merge a pull request of a fork", "What each account sees of the rules"),
                *("A workflow file without the permission", "Who reported a check", "The token of the App"),
                *(REVIEWS[0], REVIEWS[2]),
            },
        ),
        ("gitlab", FREE, {REVIEWS[0], REVIEWS[2]}),
        ("gitlab", PREMIUM, set[str]()),
        ("gitea", FREE, {REVIEWS[1], REVIEWS[2]}),
    ],
    ids=["github with an App", "github free", "github with one token", "gitlab", "gitlab premium", "gitea"],
)
def test_the_whole_story_is_equal_on_two_fakes(kind: str, like: Access, not_measured: set[str], tmp_path: Path):
    report = run(kind, tmp_path / kind, like)
    assert report.problems == []
    assert outcomes(report) == dict.fromkeys(not_measured, "not measured")
    assert report.requests < kit.MAX_REQUESTS
    assert report.cleanup.endswith("was deleted.")
    assert report.verdict.endswith("Nothing needs attention.")
    answers = {one.name: one.real for one in report.comparisons}
    ended = [step.title for step in report.steps if step.outcome == "run"]
    expected = {name: part for title, parts in ANSWERS.items() if title in ended for name, part in parts.items()}
    found = {name: {key: answers.get(name, {}).get(key) for key in part} for name, part in expected.items()}
    assert found == expected


ANSWERS: dict[str, dict[str, dict[str, Any]]] = {
    "Commands in comments": {"its submission after the command cancel": {"state": "cancelled"}},
    "Requested changes and a dismissed approval": {
        "its submission, changes requested": {"state": "not_ready", "reason": "changes_requested"},
        "its submission, approval dismissed": {"state": "not_ready", "reason": "waiting_for_review"},
        "its submission, approved again": {"state": "merged"},
    },
    "An open conversation": {
        "its submission, conversation open": {"state": "not_ready", "reason": "waiting_for_conversations"},
        "its submission, conversation resolved": {"state": "merged"},
    },
    "A code owner": {
        "its submission, code owner asked": {"state": "not_ready"},
        "its submission, approved by the code owner": {"state": "merged"},
    },
    "Squash and rebase the tested commit": {
        "the commit on main, squash, head branch kept": {"is the reported commit": True},
        "the commit on main, rebase, head branch deleted": {"the head branch": "deleted"},
    },
    "Limits of requests": {"Mergeyard beyond the limit": {"requests while it was told to wait": 0}},
    "Pushes to a protected branch": {
        "a merge by Mergeyard without the bypass": {"queue": "PAUSED"},
        "the same after the bypass is back and the queue resumed": {"state": "merged"},
    },
    "A stacked pull request": {"the merge of the lower one": {"status": 403}},
}
"""By step: some of what every Git host answers, if the step ran."""
