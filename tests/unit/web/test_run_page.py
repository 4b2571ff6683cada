"""The page of a run: its checks, their output, its purpose and remarks."""

import pytest
from msgspec.structs import replace

from mergeyard.domain.ids import SubmissionId
from mergeyard.domain.pull_requests import Status, StatusState
from mergeyard.domain.runs import Run, RunKind
from mergeyard.domain.states import Reason, RunStatus
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.forge import ChecksFrom
from mergeyard.service.runs import RunWithStatuses
from mergeyard.web.run_page import extract_tail, to_readable_text
from mergeyard.web.run_progress import RunChecks, build_run_checks, describe_purpose, list_remarks
from tests.support.builders import a_plain_queue, a_run, a_world


def status(context: str, state: StatusState = StatusState.SUCCESS, url: str = "") -> Status:
    return Status(context=context, state=state, at=Instant(0), url=url)


def checks_of(
    *statuses: Status, run: RunStatus = RunStatus.IN_PROGRESS, source: ChecksFrom = ChecksFrom.API
) -> RunChecks:
    required = replace(a_run(1, status=run), required_statuses=("unit", "lint"))
    return build_run_checks(RunWithStatuses(required, statuses), source)


def test_required_checks_are_shown_even_if_not_reported():
    checks = checks_of(status("unit"), status("docs"))
    assert [(each.name, each.state) for each in checks.required] == [("unit", "success"), ("lint", "missing")]
    assert [each.name for each in checks.others] == ["docs"]
    assert checks.done == 1


def test_checks_without_a_result_at_the_end_of_the_run_never_reported():
    checks = checks_of(status("unit", StatusState.PENDING), run=RunStatus.FAILED)
    assert [each.state for each in checks.required] == ["never", "never"]


def test_failed_checks_are_culprits_and_unreported_ones_only_if_none_failed():
    failed = checks_of(status("unit", StatusState.FAILURE), run=RunStatus.FAILED)
    assert [each.name for each in failed.culprits] == ["unit"]
    overdue = checks_of(status("unit"), run=RunStatus.FAILED)
    assert [each.name for each in overdue.culprits] == ["lint"]


def test_a_check_links_to_its_reporter_or_to_its_local_output():
    (reported, _) = checks_of(status("unit", url="https://ci.example/7")).required
    assert (reported.link, reported.leads_outside) == ("https://ci.example/7", True)
    (local, _) = checks_of(status("unit", url="https://mergeyard.example/x"), source=ChecksFrom.RUN).required
    assert (local.link, local.leads_outside) == ("/runs/run%20of%201/output/unit", False)


def test_an_unsafe_url_is_not_linked():
    for url in ("javascript:alert(1)", "data:text/html,x", "//evil.example", "", "https://a\nb", "/runs"):
        assert checks_of(status("unit", url=url)).required[0].link is None


def test_a_short_output_is_shown_as_it_is():
    assert extract_tail(b"one\ntwo\n").text == "one\ntwo\n"
    assert extract_tail(b"one\ntwo\n").left_out == 0


def test_a_long_output_is_shortened_to_its_last_whole_lines():
    tail = extract_tail(b"one\ntwo\nthree\n", limit=8)
    assert tail.text == "three\n"
    assert tail.left_out == len(b"one\ntwo\n")


def test_a_line_longer_than_the_limit_is_truncated():
    assert extract_tail(b"x" * 100, limit=8).text == "x" * 8


def test_terminal_control_sequences_are_removed():
    assert (
        to_readable_text(b"\x1b[31;1mred\x1b[0m \x1b]8;;https://x\x07link\x1b]8;;\x07\r\n50 %\r100 %\n")
        == "red link\n50 %\n100 %\n"
    )


def test_unreadable_bytes_are_replaced():
    assert to_readable_text(b"a\x00b\xffc\td\n") == "a\ufffdb\ufffdc\td\n"


@pytest.mark.parametrize(
    ("run", "sentence"),
    [
        (a_run(1), "Tests #1 as it would merge, on top of main."),
        (a_run(1, 2, 3), "Tests #3 as it would merge, on top of #1 and #2."),
        (a_run(1, 2, 3, tests=2), "Tests #2 and #3 together, as they would merge, on top of #1."),
        (a_run(*range(1, 9)), "Tests #8 as it would merge, on top of #1, #2, #3, #4, #5, #6 and 1 more."),
        (
            a_run(1, 2, kind=RunKind.BISECTION, tests=2),
            "Bisects a failed batch to find the culprit: tests #1 and #2.",
        ),
        (
            a_run(tests=0, kind=RunKind.BASE),
            "Tests main itself, without a pull request, to find out whether it passes on its own.",
        ),
    ],
)
def test_the_purpose_of_a_run_says_what_it_tests_and_on_top_of_what(run: Run, sentence: str):
    assert describe_purpose(run, "main") == sentence


def test_an_ordinary_run_has_no_remarks():
    assert list(list_remarks(a_run(1), a_plain_queue())) == []


def test_remarks_list_what_is_special_about_a_run():
    stopped = replace(a_run(1, status=RunStatus.CANCELLED), attempt=1, timed_out=True, restart_requested=True)
    remarks = " ".join(list_remarks(stopped, a_plain_queue()))
    assert "This is attempt 2" in remarks
    assert "within 5 h" in remarks
    assert "requested a restart" in remarks
    assert "stopped" in remarks


def test_a_remark_says_why_a_result_no_longer_counts():
    remarks = list(list_remarks(replace(a_run(1), invalidated=Reason.TARGET_BRANCH_MOVED), a_plain_queue()))
    assert remarks == ["Its result no longer counts. The target branch moved. Testing again on the new tip."]


def test_a_remark_names_pull_requests_that_are_left_out():
    world = a_world(prs=2)
    run = replace(a_run(2), excluded_submission_ids=frozenset({world.submission_id(1), SubmissionId(99)}))
    assert list(list_remarks(run, world.queue)) == ["Left out because they are expected to leave the queue: #1."]
