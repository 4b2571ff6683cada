"""The page of a run: its checks, its name, purpose and remarks."""

from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from mergeyard.domain.ids import SubmissionId
from mergeyard.domain.pull_requests import Status, StatusState
from mergeyard.domain.runs import Run, RunKind
from mergeyard.domain.states import REASON_MESSAGES, CheckState, Reason, RunStatus
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.forge import ChecksFrom
from mergeyard.service.runs import RunWithStatuses
from mergeyard.web.run_progress import RunChecks, build_run_checks, describe_purpose, list_remarks, name_run
from tests.support.builders import a_plain_queue, a_run, a_world


def status(context: str, state: StatusState = StatusState.SUCCESS, url: str = "", at: int = 0) -> Status:
    return Status(context=context, state=state, at=Instant(at), url=url)


def checks_of(
    *statuses: Status,
    run: RunStatus = RunStatus.IN_PROGRESS,
    source: ChecksFrom = ChecksFrom.API,
    results: Mapping[str, CheckState] | None = None,
) -> RunChecks:
    required = replace(a_run(1, status=run), required_statuses=("unit", "lint"), checks=results or {})
    return build_run_checks(RunWithStatuses(required, statuses), source)


def test_required_checks_are_shown_even_if_not_reported():
    checks = checks_of(status("unit"), status("docs"))
    assert [(each.name, each.state) for each in checks.required] == [("unit", "success"), ("lint", "missing")]
    assert [each.name for each in checks.others] == ["docs"]
    assert checks.done == 1


def test_checks_without_a_result_at_the_end_of_the_run_did_not_finish_or_did_not_report():
    checks = checks_of(status("unit", StatusState.PENDING), run=RunStatus.CANCELLED)
    assert [each.state for each in checks.required] == ["unfinished", "never"]


def test_a_result_that_the_run_recorded_is_never_shown_as_not_reported():
    results = {"unit": CheckState.FAILED, "lint": CheckState.PASSED}
    checks = checks_of(status("unit", StatusState.PENDING), run=RunStatus.FAILED, results=results)
    assert [each.state for each in checks.required] == ["failure", "success"]
    assert [each.name for each in checks.culprits] == ["unit"]


def test_a_check_that_is_run_again_later_does_not_change_an_ended_run():
    rerun = status("unit", StatusState.SUCCESS)
    results = {"unit": CheckState.FAILED, "lint": CheckState.PASSED}
    assert checks_of(rerun, run=RunStatus.FAILED, results=results).required[0].state == "failure"
    assert checks_of(rerun, results=results).required[0].state == "success"


def test_a_result_shows_how_long_after_the_start_it_was_reported():
    started = a_run(1).started_at
    assert started is not None
    done, running = checks_of(
        status("unit", at=started + 41_000), status("lint", StatusState.PENDING, at=started + 1)
    ).required
    assert (done.after_ms, running.after_ms) == (41_000, None)
    assert checks_of(status("unit", at=started - 1)).required[0].after_ms is None


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


@pytest.mark.parametrize(
    ("run", "name"),
    [
        (a_run(1, 2, 10), "Test run for #10"),
        (a_run(1, 2, 3, tests=2), "Test run for #2 and #3"),
        (a_run(1, 2, kind=RunKind.BISECTION, tests=2), "Bisection run for #1 and #2"),
        (a_run(tests=0, kind=RunKind.BASE), "Baseline run for main"),
    ],
)
def test_the_name_of_a_run_says_what_it_tests(run: Run, name: str):
    assert name_run(run, "main") == name


@pytest.mark.parametrize(
    ("run", "sentence"),
    [
        (a_run(1), "Tests #1 on top of main."),
        (a_run(1, 2, 3), "Tests #3 on top of #1 and #2."),
        (a_run(1, 2, 3, tests=2), "Tests #2 and #3 on top of #1."),
        (a_run(*range(1, 9)), "Tests #8 on top of #1, #2, #3, #4, #5, #6 and 1 more."),
        (a_run(1, 2, kind=RunKind.BISECTION, tests=2), "Tests #1 and #2, to find the culprit of a failed batch."),
        (
            a_run(tests=0, kind=RunKind.BASE),
            "Tests main alone, to find out whether it passes without the pull requests.",
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
    assert "Retry 1" in remarks
    assert "within 5 h" in remarks
    assert "A user restarted the tests." in remarks
    assert "Stopped" in remarks


def test_a_remark_says_why_a_result_no_longer_counts():
    remarks = list(list_remarks(replace(a_run(1), invalidated=Reason.TARGET_BRANCH_MOVED), a_plain_queue()))
    assert remarks == [f"The result no longer counts. {REASON_MESSAGES[Reason.TARGET_BRANCH_MOVED]}"]


def test_a_remark_names_pull_requests_that_are_left_out():
    world = a_world(prs=2)
    run = replace(a_run(2), excluded_submission_ids=frozenset({world.submission_id(1), SubmissionId(99)}))
    assert list(list_remarks(run, world.queue)) == [
        "Does not contain #1: its result does not count if one of these merges."
    ]
