"""Text from others is printed without control characters and markup; states, times and checks as on the pages."""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
import typer
from msgspec import convert, json
from msgspec.structs import replace
from rich.console import Console

from mergeyard.cli import history, output, queues
from mergeyard.cli.output import encode_json, plain_text, print_message, sanitize
from mergeyard.cli.pull_requests import find_actor
from mergeyard.client import Queue, Run, SubmittedPullRequest, TimelineEntry
from mergeyard.domain.states import Reason
from mergeyard.web import formats
from tests.support.api_examples import ENQUEUED, QUEUE_RESPONSE, RUN, SUBMITTED

NOW = datetime(2026, 11, 14, 10, tzinfo=UTC)


@pytest.mark.parametrize("control", ["\x1b[2J", "\r", "\n", "\x07", "\u202e", "\u2066", "\u200b", "\x9b31m", "\x7f"])
def test_control_characters_are_replaced(control: str):
    assert sanitize(f"a{control}b").startswith("a�")
    assert sanitize(sanitize(control)) == sanitize(control)


def test_messages_keep_line_breaks_but_no_control_characters(capsys: pytest.CaptureFixture[str]):
    print_message("Deleted the queue for a\u202eb:\n\x9b31mmain.")
    assert capsys.readouterr() == ("", "Deleted the queue for a�b:\n�31mmain.\n")


def test_the_id_of_a_run_has_no_control_characters(capsys: pytest.CaptureFixture[str]):
    history.show_run(replace(convert(RUN, Run), id="6f1d\x1b[2J"))
    assert capsys.readouterr().out.startswith("6f1d�[2J  ")


def test_json_escapes_control_characters():
    response = {"title": "a\u202eb\x9b\x1b", "at": datetime(2026, 11, 14, tzinfo=UTC)}
    assert encode_json(response) == r'{"title": "a\u202eb\u009b\u001b", "at": "2026-11-14T00:00:00.000Z"}'


def test_letters_of_all_scripts_are_kept():
    assert sanitize("größe 名前 🐑 [x]") == "größe 名前 🐑 [x]"


def test_rich_markup_is_printed_as_text():
    out = Console(force_terminal=True, color_system="standard", width=80)
    with out.capture() as captured:
        out.print(plain_text("[red]x[/]"), "[link=https://evil.example]", plain_text("[link=https://evil.example]y"))
    assert "[red]x[/]" in captured.get()
    assert "[link=https://evil.example]y" in captured.get()


# Words, times and durations


def test_states_have_the_labels_of_the_pages():
    assert output.STATE_LABELS == formats.PULL_REQUEST_STATE_LABELS | formats.QUEUE_STATE_LABELS
    assert output.RUN_LABELS.items() <= formats.RUN_STATE_LABELS.items()
    assert output.CHECK_LABELS == formats.CHECK_STATE_LABELS


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-3, "0 s"), (0.2, "<1 s"), (41.4, "41 s"), (59.6, "1 min"), (119, "1 min 59 s"), (3600, "1 h"),
        (7140, "1 h 59 min"), (100_000, "1 d 4 h"),
    ],
)  # fmt: skip
def test_durations_are_rounded_to_two_units_as_on_the_pages(seconds: float, shown: str):
    assert output.format_duration(seconds) == shown == formats.format_duration(seconds * 1000)


@pytest.mark.parametrize(
    ("seconds", "shown"), [(-70, "overdue"), (-9, "now"), (55, "~55 s"), (742, "~12 min"), (84, "~1 min 20 s")]
)
def test_estimates_are_not_more_exact_than_they_can_be(seconds: int, shown: str):
    assert output.format_eta(NOW + timedelta(seconds=seconds), NOW) == shown


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("berlin")
def test_times_are_local_and_name_their_zone():
    assert output.format_time(NOW) == "2026-11-14 11:00:00 CET"


# Pull requests, runs and queues


def a_pull_request(**members: Any) -> SubmittedPullRequest:
    return convert(SUBMITTED | members, SubmittedPullRequest)


def an_entry(reason: str, actor: str) -> TimelineEntry:
    return TimelineEntry(
        at=NOW,
        source="pending",
        to="pending",
        reason=reason,
        message="",
        actor=actor,
        test_run_id=None,
        caused_by=(),
    )


def a_run(*checks: tuple[str, str], **members: Any) -> Run:
    statuses = [
        {"context": name, "url": f"https://ci.example.com/{name}", "state": state, "durationSeconds": 41.0}
        for name, state in checks
    ]
    return convert(RUN | {"statusChecks": statuses, "checkSuites": [], "requiredStatuses": ["unit"]} | members, Run)


def a_queue(*states: str, **members: Any) -> Queue:
    enqueued = [ENQUEUED | {"state": state, "testRunId": str(at)} for at, state in enumerate(states)]
    return convert(QUEUE_RESPONSE | {"enqueuedPullRequests": enqueued, "stateReason": None} | members, Queue)


def shown_status(
    capsys: pytest.CaptureFixture[str], pull_request: SubmittedPullRequest, **context: Any
) -> list[list[str]]:
    output.show_pull_request(pull_request, output.PullRequestContext(page="https://queue.example.com/p", **context))
    return [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]


def test_status_names_the_failed_checks_with_link_and_duration(capsys: pytest.CaptureFixture[str]):
    run = a_run(("unit", "failure"), ("lint", "success"), status="failed")
    lines = shown_status(capsys, a_pull_request(state="failed", position=None), run=run)
    reason = next(at for at, line in enumerate(lines) if line[0] == "reason")
    assert lines[reason + 1] == ["✗", "unit  failed  https://ci.example.com/unit  41 s"]
    assert "lint" not in str(lines)
    assert ["page", "https://queue.example.com/p"] in lines


def test_status_of_a_run_that_took_too_long_names_the_checks_without_a_result(capsys: pytest.CaptureFixture[str]):
    run = a_run(("unit", "pending"), requiredStatuses=["unit", "lint"], status="failed")
    lines = shown_status(capsys, a_pull_request(state="failed", position=None), run=run)
    assert ["·", "unit  not finished  https://ci.example.com/unit  41 s"] in lines
    assert ["·", "lint  not reported"] in lines
    assert output.list_failing_checks(a_run(("unit", "pending"), status="in_progress")) == []


REVIEW: dict[str, Any] = {
    "code": "waiting_for_review",
    "message": "Waiting for a review from @acme/db (1 of 2 approvals).",
    "needed": 2,
    "given": 1,
    "names": ["@acme/db"],
    "met": False,
}
CONVERSATIONS: dict[str, Any] = REVIEW | {"code": "waiting_for_conversations", "message": "Resolve \x1bthem."}


def test_status_shows_each_unmet_requirement_on_a_line_of_its_own(capsys: pytest.CaptureFixture[str]):
    members: dict[str, Any] = {"state": "not_ready", "position": None, "requirements": [REVIEW, CONVERSATIONS]}
    reason: dict[str, Any] = {"code": "waiting_for_review", "message": "All sentences together.", "waitingFor": []}
    lines = shown_status(capsys, a_pull_request(reason=reason, **members))
    assert lines[1] == ["reason", "Waiting for a review from @acme/db (1 of 2 approvals). (waiting_for_review)"]
    assert " ".join(lines[2]) == "Resolve �them. (waiting_for_conversations)"
    assert "All sentences together" not in str(lines)
    draft: dict[str, Any] = {"code": "draft", "message": "The pull request is a draft.", "waitingFor": []}
    lines = shown_status(capsys, a_pull_request(reason=draft, **members))
    assert lines[1] == ["reason", "The pull request is a draft. (draft)"]
    assert lines[2] == ["missing", f"{REVIEW['message']} (waiting_for_review)"]


@pytest.mark.parametrize("members", [{"forceEnqueued": True}, {"isCurrentlySubmittedToQueue": False}], ids=str)
def test_status_shows_no_requirement_that_the_queue_does_not_wait_for(
    capsys: pytest.CaptureFixture[str], members: dict[str, Any]
):
    assert "acme/db" in str(shown_status(capsys, a_pull_request(requirements=[REVIEW])))
    assert "acme/db" not in str(shown_status(capsys, a_pull_request(requirements=[REVIEW | {"met": True}])))
    assert "acme/db" not in str(shown_status(capsys, a_pull_request(requirements=[REVIEW], **members)))


def test_requirements_are_in_the_json_as_the_server_sent_them():
    assert json.decode(encode_json(a_pull_request(requirements=[REVIEW])))["requirements"] == [REVIEW]


def test_status_shows_position_and_estimate(capsys: pytest.CaptureFixture[str]):
    expected = datetime.now(UTC) + timedelta(minutes=12, seconds=20)
    waiting = replace(a_pull_request(position=8), estimated_merge_at=expected)
    assert ["position", "8 · ~12 min"] in shown_status(capsys, waiting)
    unknown = replace(waiting, estimated_merge_at=None, estimate_note="the queue is paused")
    lines = shown_status(capsys, unknown)
    assert ["position", "8 · no estimate"] in lines
    assert ["expected", "no estimate: the queue is paused"] in lines


def test_status_shows_what_a_bisection_means_for_the_pull_request(capsys: pytest.CaptureFixture[str]):
    note = "Bisecting the failed batch: this pull request is a possible culprit. No action is needed yet."
    assert ["bisection", note] in shown_status(capsys, a_pull_request(bisectionNote=note))
    assert "bisection" not in [line[0] for line in shown_status(capsys, a_pull_request())]


def test_status_shows_who_submitted_it_and_who_forced_it(capsys: pytest.CaptureFixture[str]):
    forced = replace(a_pull_request(), force_enqueued=True)
    lines = dict(shown_status(capsys, forced, submitted_by="ada", forced_by="linus"))
    assert lines["submitted"].endswith(" by ada")
    assert lines["forced"] == "by linus: conflicts and rules of the Git host ignored"
    assert dict(shown_status(capsys, forced))["forced"] == "conflicts and rules of the Git host ignored"
    assert "forced" not in dict(shown_status(capsys, a_pull_request()))


def test_status_shows_who_chose_the_priority_and_that_it_is_tested_alone(capsys: pytest.CaptureFixture[str]):
    usual = dict(shown_status(capsys, a_pull_request(usedDefaultPriorityName="medium", noBatch=False)))
    assert usual["priority"].endswith(" (default)")
    assert "batching" not in usual
    urgent = a_pull_request(priorityName="urgent", noBatch=True)
    lines = dict(shown_status(capsys, urgent, priority_set_by="grace"))
    assert lines["priority"] == "urgent, set by grace"
    assert lines["batching"] == "off: tested alone"


def test_the_last_entry_of_the_timeline_names_who_changed_something():
    forced, again = (an_entry("forced", "linus"), an_entry("forced", "grace"))
    timeline = (again, an_entry("force_withdrawn", "ada"), forced, an_entry("submitted", "ada"))
    assert find_actor(timeline, Reason.FORCED) == "grace"
    assert find_actor(timeline, Reason.PRIORITY_CHANGED) == "ada"
    assert find_actor((), Reason.FORCED) == ""


def test_status_shows_the_problems_of_the_queue(capsys: pytest.CaptureFixture[str]):
    queue = a_queue(problems=["main fails its required checks"])
    assert ["queue", "main fails its required checks"] in shown_status(capsys, a_pull_request(), queue=queue)


def test_status_says_why_the_queue_is_paused_once(capsys: pytest.CaptureFixture[str]):
    paused = a_queue(state="PAUSED", stateReason="Release freeze")
    assert ["queue", "Paused: Release freeze"] in shown_status(capsys, a_pull_request(), queue=paused)
    reason: dict[str, Any] = {
        "code": "queue_paused",
        "message": "The queue is paused. Release freeze",
        "waitingFor": [],
    }
    lines = shown_status(capsys, a_pull_request(reason=reason), queue=paused)
    assert [line for line in lines if "Release freeze" in line[1]] == [
        ["reason", f"{reason['message']} ({reason['code']})"]
    ]
    assert "queue" not in [line[0] for line in shown_status(capsys, a_pull_request(), queue=a_queue())]


def test_a_run_shows_the_link_of_every_check(capsys: pytest.CaptureFixture[str]):
    history.show_run(a_run(("other", "success"), status="in_progress"))
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert lines[-2].split() == ["·", "unit", "pending"]
    assert lines[-1].split() == ["✓", "other", "passed", "https://ci.example.com/other", "41", "s"]


def test_queues_are_listed_with_numbers_reasons_and_problems(capsys: pytest.CaptureFixture[str]):
    counts = {"queued": 4, "testing": 2, "notReady": 1}
    busy = a_queue(state="PAUSED", stateReason="Freeze", mode="single", pullRequestCounts=counts, problems=["Slow"])
    broken = a_queue(mode="single", problems=["No required checks"])
    unknown = replace(a_queue(mode="parallel"), pull_request_counts=None)
    queues.show_queues([busy, broken, unknown])
    header, first, second, third = capsys.readouterr().out.splitlines()
    assert header.split("  ")[0] == "REPOSITORY"
    assert first.split()[2:] == ["Paused", "single", "4", "2", "1", "Freeze;", "Slow"]
    assert second.split()[2:4] == ["Problem", "single"]
    assert second.endswith("No required checks")
    assert third.split()[2:] == ["Running", "parallel", "–", "–", "–"]
    queues.show_queues([a_queue()])
    assert "REASON" not in capsys.readouterr().out


def test_a_table_in_a_pipe_has_no_lines_and_cuts_titles_after_60_columns(capsys: pytest.CaptureFixture[str]):
    table = output.build_table("PR", "title")
    table.add_row("#1", output.cut_title("word " * 60))
    output.print_table(table, "No pull requests.")
    header, row = capsys.readouterr().out.splitlines()
    assert header == "PR  TITLE"
    assert row == "#1  " + ("word " * 60)[:59] + "…"


def test_an_empty_table_says_so_on_standard_error(capsys: pytest.CaptureFixture[str]):
    output.print_table(output.build_table("id"), "No webhooks.")
    assert capsys.readouterr() == ("", "No webhooks.\n")


# Messages and questions


class Terminal(StringIO):
    """Standard input of a user who types this text."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def type_answer(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], StringIO]:
    def type_answer(text: str) -> StringIO:
        shown = Terminal()
        monkeypatch.setattr("sys.stdin", Terminal(text))
        monkeypatch.setattr("sys.stderr", shown)
        return shown

    return type_answer


@pytest.mark.parametrize("answer", ["n\n", "\n", ""])
def test_an_action_that_the_user_does_not_confirm_ends_the_command(type_answer: Callable[[str], StringIO], answer: str):
    shown = type_answer(answer)
    with pytest.raises(typer.Exit) as ended:
        output.confirm("Pause the queue?", yes=False)
    assert ended.value.exit_code == output.INTERRUPTED_EXIT_CODE
    assert "Nothing was changed." in shown.getvalue()


def test_a_confirmed_action_goes_on(type_answer: Callable[[str], StringIO]):
    shown = type_answer("y\n")
    output.confirm("Pause the queue \x1b[2J?", yes=False)
    assert "\x1b" not in shown.getvalue()


def test_no_question_is_asked_with_yes_or_without_a_terminal(
    type_answer: Callable[[str], StringIO], monkeypatch: pytest.MonkeyPatch
):
    shown = type_answer("n\n")
    output.confirm("Pause the queue?", yes=True)
    monkeypatch.setattr("sys.stdin", StringIO("n\n"))
    output.confirm("Pause the queue?", yes=False)
    assert shown.getvalue() == ""


def test_an_error_and_its_hint_are_marked(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(typer.Exit):
        output.exit_with_message("It failed.", hint="Try again.")
    assert capsys.readouterr() == ("", "error: It failed.\nhint: Try again.\n")


def test_a_queue_shows_what_keeps_it_from_working_and_the_command_that_finds_the_cause(
    capsys: pytest.CaptureFixture[str],
):
    refused = {"code": "provider_refused", "message": "The Git host refuses.", "since": "2026-11-14T10:00:00.000Z"}
    queues.show_queue(a_queue(obstacle=refused))
    shown = " ".join(capsys.readouterr().out.split())
    assert "UTC: The Git host refuses." in shown
    assert "mergeyard host check github.com/acme/app" in shown
    queues.show_queue(a_queue(problem=refused | {"code": "provider_unavailable"}))
    assert "host check" not in capsys.readouterr().out
