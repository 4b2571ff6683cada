"""The parts of the kit: what it refuses, what it removes, what it compares, and its limits."""

import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.live.__main__ import find_api_url, main
from tests.live.client import Budget, BudgetSpent, NotRun, Reply, RequestRefused
from tests.live.fakes.gitea import fake_gitea
from tests.live.fakes.github import fake_github
from tests.live.gitea import LiveGitea
from tests.live.github import LiveGithub
from tests.live.hosts import MARKER, Access
from tests.live.report import Report, compare, to_json, to_markdown
from tests.live.scratch import clean_up_or_explain, open_stage, prepare_repository
from tests.live.shapes import find_wrong_members, read_shapes
from tests.live.stage import LOCAL, Observation, StepResult, pick
from tests.support.http_server import Receive, Scope, Send, respond, serve_in_thread

RUN = "0a1b2c3d"


@pytest.fixture
def access(tmp_path: Path) -> Iterator[Access]:
    with fake_gitea(tmp_path / "fake") as access:
        yield access


Live = Callable[..., LiveGitea]


@pytest.fixture
def live(access: Access, tmp_path: Path) -> Iterator[Live]:
    """Makes hosts, each with its own local repository."""
    made = list[LiveGitea]()

    def make(name: str, kind: type[LiveGitea] = LiveGitea) -> LiveGitea:
        (tmp_path / name).mkdir()
        made.append(kind(access, "scratch", tmp_path / name, Budget(100, 60, 0)))
        return made[-1]

    yield make
    for host in made:
        host.close()


# What the kit does not touch, and what it removes


def test_repository_with_content_of_others_is_refused_and_stays(live: Live):
    owner = live("owner")
    owner.create_repository().must_succeed()
    owner.origin.commit("main", {"precious.txt": "1"})
    assert owner.push("main").succeeded
    owner.commit("kit-topic", {"b.txt": "1"})
    owner.protect(1).must_succeed()
    number = owner.number_of(owner.open("kit-topic", "A change"))
    before = owner.refs()
    host = live("kit")
    with pytest.raises(NotRun, match="the kit did not create it and does not touch it"):
        prepare_repository(host, RUN)
    assert clean_up_or_explain(host, keep=False) == "No repository was created or changed."
    assert owner.refs() == before
    assert owner.read(number).body["state"] == "open"
    assert owner.read_rules().body["protected"] is True


@pytest.mark.parametrize("is_marked", [False, True])
def test_scratch_repository_is_used_if_it_is_empty_or_marked_and_is_not_deleted(is_marked: bool, live: Live):
    owner = live("owner")
    owner.create_repository().must_succeed()
    if is_marked:
        owner.origin.commit("main", {"a.txt": "of an earlier run"})
        owner.origin.branch(MARKER, base="main")
        assert owner.push("main").succeeded
        assert owner.push(MARKER).succeeded
        owner.protect(1).must_succeed()
    host = live("kit")
    assert prepare_repository(host, RUN) == []
    host.protect(1).must_succeed()
    host.commit(f"kit-{RUN}-topic", {"b.txt": "1"}, base="start")
    number = host.number_of(host.open(f"kit-{RUN}-topic", "A change"))
    assert "were removed" in clean_up_or_explain(host, keep=False)
    assert {ref for ref in host.refs() if ref.startswith("refs/heads/")} == {"refs/heads/main", f"refs/heads/{MARKER}"}
    assert host.read(number).body["state"] == "closed"
    assert host.read_rules().body["protected"] is False


def test_scratch_repository_of_a_plan_without_rules_can_be_used_again(tmp_path: Path):
    (tmp_path / "kit").mkdir()
    like = Access(web_url="", api_url="", owner="", token="", is_free=True)
    with fake_github(tmp_path / "fake", like) as access:
        host = LiveGithub(access, "scratch", tmp_path / "kit", Budget(100, 60, 0))
        assert len(prepare_repository(host, RUN)) == 1
        assert prepare_repository(host, "4d5e6f70") == []
        assert host.protect(1).status == 403
        host.close()


class Interrupted(LiveGitea):
    def connect(self) -> None:
        raise KeyboardInterrupt


@pytest.mark.parametrize(("keep", "left"), [(False, 404), (True, 200)])
def test_stopped_kit_deletes_what_it_created_unless_it_must_keep_it(keep: bool, left: int, live: Live, tmp_path: Path):
    host = live("kit", Interrupted)
    with pytest.raises(KeyboardInterrupt), open_stage(host, tmp_path / "kit", LOCAL, RUN, keep=keep):
        pass
    assert live("reader").read_repository().status == left


class Lossy(LiveGitea):
    """Loses the answers to some requests."""

    def create_repository(self) -> Reply:
        super().create_repository().must_succeed()
        raise httpx2.ReadError("the answer was lost")

    def delete_fork(self) -> Reply:
        raise httpx2.ReadError("the answer was lost")


def test_repository_is_deleted_although_answers_were_lost(live: Live):
    host = live("kit", Lossy)
    with pytest.raises(httpx2.ReadError):
        prepare_repository(host, RUN)
    host.fork_path = "kit-second/scratch"
    left = "The fork kit-second/scratch is left (the answer was lost). Delete it."
    assert clean_up_or_explain(host, keep=False) == f"kit-owner/scratch was deleted. {left}"
    assert live("reader").read_repository().status == 404


class Refusing(LiveGitea):
    status = 422

    def create_repository(self) -> Reply:
        return answer_of("/user/repos", None, self.status)

    def delete_repository(self) -> Reply:
        return answer_of("/repos/kit-owner/scratch", None, self.status)


@pytest.mark.parametrize(
    ("status", "end"), [(422, "No repository was created or changed."), (502, "kit-owner/scratch could not be removed")]
)
def test_only_a_clear_refusal_proves_that_no_repository_was_created(
    status: int, end: str, live: Live, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(Refusing, "status", status)
    host = live("kit", Refusing)
    with pytest.raises(RequestRefused):
        prepare_repository(host, RUN)
    assert clean_up_or_explain(host, keep=False).startswith(end)


def test_repository_that_is_gone_needs_no_deletion(live: Live):
    host = live("kit")
    prepare_repository(host, RUN)
    assert host.delete_repository().succeeded
    assert clean_up_or_explain(host, keep=False) == "kit-owner/scratch does not exist."


def test_port_for_webhooks_that_is_taken_is_named(live: Live, tmp_path: Path):
    host = live("kit")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        with (
            pytest.raises(NotRun, match=f"port {port} of this machine cannot be used"),
            open_stage(host, tmp_path / "kit", LOCAL, RUN, keep=False, public_url="http://127.0.0.1", port=port),
        ):
            pass
    assert host.cleanup == "No repository was created or changed."


# Limits


def test_limits_of_requests_and_time_and_a_stop_end_the_run():
    budget = Budget(2, 60, 0)
    budget.spend(is_write=False)
    budget.spend(is_write=True)
    with pytest.raises(BudgetSpent, match="limit of 2 requests"):
        budget.spend(is_write=False)
    budget.extend(1, 60)
    budget.spend(is_write=False)
    with pytest.raises(BudgetSpent, match="time limit"):
        Budget(2, 0, 0).spend(is_write=False)
    stopped = Budget(2, 60, 0)
    stopped.stopped.set()
    with pytest.raises(BudgetSpent, match="stopped"):
        stopped.check()


class RecordingBudget(Budget):
    def __init__(self) -> None:
        super().__init__(10, 60, pause_s=5)
        self.waits = list[float]()

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)


def test_only_writes_wait_for_the_write_before():
    budget = RecordingBudget()
    for is_write in (True, False, True):
        budget.spend(is_write=is_write)
    first, second = budget.waits
    assert first == 0
    assert 4 < second <= 5


# The report


def seen(name: str, answer: Any, **facts: Any) -> Observation:
    return Observation(name=name, asked="GET it", answer=answer, **facts)


def missed(name: str) -> Observation:
    return Observation(name=name, asked="", answer=None, not_measured="needs a second account")


def step(*observations: Observation, **facts: Any) -> StepResult:
    return StepResult(title="A step", observations=list(observations), **facts)


def report_of(real: StepResult, fake: StepResult) -> Report:
    steps = compare([real], [fake])
    return Report(
        host="GitHub",
        address="https://github.com",
        steps=steps,
        requests=1,
        cleanup="Nothing is left.",
        account="an App",
    )


@pytest.mark.parametrize(
    ("real", "fake", "problem"),
    [
        (step(seen("it", 1)), step(seen("it", 1)), None),
        (step(seen("it", 1)), step(seen("it", 2)), None),
        (step(seen("it", 1, matters="it decides")), step(seen("it", 2)), "“A step”, it: the fake answers differently"),
        (step(seen("it", 1, matters="it decides")), step(), "“A step”, it: the fake answers differently"),
        (step(), step(seen("it", 1, matters="it decides")), "“A step”, it: the fake answers differently"),
        (step(seen("it", 1, is_measured=True, matters="it decides")), step(seen("it", 2)), None),
        (step(seen("it", 1, expected="2", holds=False)), step(seen("it", 1)), "“A step”, it: not as expected (2)."),
        (step(seen("it", 1, expected="1", holds=True)), step(seen("it", 1)), None),
        (step(failed="it broke"), step(), "The step “A step” failed: it broke."),
        (step(), step(failed="it broke"), "The step “A step” failed: it ran at the Git host, but not at the fake"),
        (step(not_measured="no account"), step(seen("it", 1, matters="it decides")), None),
        (step(missed("it")), step(seen("it", 1, matters="it decides")), None),
        (step(seen("it", 1, matters="it decides")), step(missed("it")), None),
    ],
)
def test_only_what_matters_needs_attention(real: StepResult, fake: StepResult, problem: str | None):
    report = report_of(real, fake)
    assert [text for text in report.problems if not text.startswith(problem or "nothing")] == []
    assert len(report.problems) == (problem is not None)
    assert report.verdict.endswith("Nothing needs attention.") == (problem is None)


def test_reports_show_both_answers_and_reasons_and_no_secret():
    real = step(seen("it", {"token": "s3cret", "key": "line\nline"}, matters="it decides"))
    report = report_of(real, step(seen("it", "other")))
    for text in (to_markdown(report, ["s3cret", "line\nline"]), to_json(report, ["s3cret", "line\nline"])):
        assert "s3cret" not in text
        assert "line\\nline" not in text
        assert "it decides" in text
        assert "other" in text
        assert report.verdict in text
    assert "Not measured: no account." in to_markdown(report_of(step(not_measured="no account"), step()), [])


def test_reports_say_why_something_was_not_measured_and_what_the_fake_answered():
    real = step(missed("it"), seen("that", 2, is_measured=True, note="Seen from here"))
    report = report_of(real, step(seen("it", "an answer", expected="an answer", holds=True), seen("that", 3)))
    text = to_markdown(report, [])
    assert '- not measured: it (`GET it`)\n\n  Needs a second account.\n\n  Fake: `"an answer"`\n' in text
    assert "Expected: an answer. As expected.\n" in text
    assert "- measured: that (`GET it`)\n\n  Git host: `2`\n\n  Seen from here.\n" in text
    assert "1 more measured, 1 not measured." in report.verdict
    assert "Mergeyard used an App." in text


def answer_of(path: str, body: Any, status: int = 200) -> Reply:
    return Reply(asked=f"GET {path}?page=1", status=status, headers={}, body=body)


@pytest.mark.parametrize(
    ("real", "fake", "wrong"),
    [
        ({"a": 1, "b": "x"}, {"a": 2}, {}),
        ({"a": 1}, {"a": None}, {}),
        ({"a": 1}, {"a": "1"}, {"a": (["number"], ["text"])}),
        ({"a": 1}, {"a": 1, "b": True}, {"b": (["absent"], ["boolean"])}),
        ({"a": None}, {"a": {"b": 1}}, {}),
        ({"a": []}, {"a": [{"b": 1}]}, {}),
        ({"a": [{"b": 1}]}, {"a": [{"c": 1}]}, {"a[].c": (["absent"], ["number"])}),
        ([{"a": 1}], [{"a": None}, {"a": False}], {"[].a": (["number"], ["boolean", "null"])}),
    ],
)
def test_fake_has_only_members_that_the_git_host_has(real: Any, fake: Any, wrong: dict[str, Any]):
    shapes = [read_shapes([answer_of("/it", body)], str)["GET /it"] for body in (real, fake)]
    assert find_wrong_members(*shapes) == wrong
    report = report_of(*(step(seen("it", shape, is_shape=True, matters="it misleads")) for shape in shapes))
    assert len(report.problems) == bool(wrong)


def test_requests_that_only_one_side_sent_have_no_shape_to_compare():
    shape = seen("GET /it", {"a": ["number"]}, is_shape=True, matters="it misleads")
    assert report_of(step(shape), step()).problems == report_of(step(), step(shape)).problems == []


def test_steps_that_the_fake_did_not_reach_are_one_problem_each():
    (compared,) = compare([step(seen("it", 1, matters="it decides"), seen("that", 2, matters="it decides"))], [])
    report = Report(host="GitHub", address="", steps=[compared], requests=1, cleanup="", account="")
    (problem,) = report.problems
    assert "it ran at the Git host, but not at the fake: the run there ended before" in problem


def test_members_are_picked_from_objects_and_lists():
    body = {"base": {"ref": "main"}, "labels": [{"name": "a"}, {"name": "b"}]}
    assert pick(body, "base.ref") == "main"
    assert pick(body, "labels[].name") == ["a", "b"]
    assert pick([{"state": "open"}], "[].state") == ["open"]
    assert pick(body, "head.sha") == "<absent>"


# The command


def test_command_without_owner_and_token_says_what_to_set(capsys: pytest.CaptureFixture[str]):
    assert main(["github"]) == 2
    assert "Set --owner and --token-file" in capsys.readouterr().err


def test_command_needs_the_key_of_the_app(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    (tmp_path / "token").write_text("s3cret\n")
    options = ["--owner", "acme", "--token-file", str(tmp_path / "token"), "--app-id", "1"]
    assert main(["github", *options]) == 2
    shown = capsys.readouterr()
    assert "--app-id and --app-key-file together" in shown.err
    assert "s3cret" not in shown.out + shown.err


def test_command_ends_when_the_minutes_are_over(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    (tmp_path / "token").write_text("s3cret\n")
    where = ["--url", "http://127.0.0.1:9", "--owner", "acme", "--token-file", str(tmp_path / "token")]
    assert main(["gitea", *where, "--minutes", "0"]) == 2
    assert "the time limit is reached" in capsys.readouterr().err


@pytest.mark.parametrize("url", ["http://127.0.0.1:9", "gitea.example.com", "http://gitea..example.com", "http://[::"])
def test_command_says_that_the_address_does_not_answer(url: str, capsys: pytest.CaptureFixture[str], tmp_path: Path):
    (tmp_path / "token").write_text("s3cret\n")
    where = ["--url", url, "--owner", "acme", "--token-file", str(tmp_path / "token")]
    assert main(["gitea", *where]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{url}/api/v1 does not answer: ")
    assert line.endswith("correct --url or --api-url.")


def test_command_says_that_another_server_answers(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    async def greet(scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG001
        await respond(send, 200, {}, b"<html>Welcome</html>")

    (tmp_path / "token").write_text("s3cret\n")
    with serve_in_thread(greet) as url:
        assert main(["gitea", "--url", url, "--owner", "acme", "--token-file", str(tmp_path / "token")]) == 2
    problem = f"{url}/api/v1 does not answer as Gitea does: correct --url or --api-url\n"
    assert capsys.readouterr().err == problem


def test_command_names_a_file_that_is_missing(capsys: pytest.CaptureFixture[str]):
    assert main(["gitlab", "--owner", "acme", "--token-file", "no-such-file"]) == 2
    assert capsys.readouterr().err == "no-such-file cannot be read: No such file or directory.\n"


def test_command_knows_its_steps(capsys: pytest.CaptureFixture[str]):
    assert main(["gitea", "--steps", "merge,dance"]) == 2
    assert "There is no step dance." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("kind", "url", "api"),
    [
        ("github", "https://github.com", "https://api.github.com"),
        ("github", "https://acme.ghe.com", "https://api.acme.ghe.com"),
        ("github", "https://git.example.com", "https://git.example.com/api/v3"),
        ("gitlab", "https://gitlab.com", "https://gitlab.com/api/v4"),
    ],
)
def test_address_of_the_api(kind: str, url: str, api: str):
    assert find_api_url(kind, url) == api


def test_command_explains_its_options(capsys: pytest.CaptureFixture[str]):
    with suppress(SystemExit):
        main(["--help"])
    assert "--second-token-file" in capsys.readouterr().out
