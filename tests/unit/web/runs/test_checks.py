"""The statuses of a run, as pages show them."""

from msgspec.structs import replace

from mergeyard.domain.instants import Instant
from mergeyard.domain.states import RunStatus
from mergeyard.domain.statuses import Status, StatusState
from mergeyard.ports.host import ChecksFrom
from mergeyard.service.runs import ReportedRun
from mergeyard.web.runs.checks import Checks, checks
from tests.support.builders import a_run


def status(context: str, state: StatusState = StatusState.SUCCESS, url: str = "") -> Status:
    return Status(context=context, state=state, at=Instant(0), url=url)


def reported(*statuses: Status, run: RunStatus = RunStatus.IN_PROGRESS, source: ChecksFrom = ChecksFrom.API) -> Checks:
    required = replace(a_run(1, status=run), required=("unit", "lint"))
    return checks(ReportedRun(required, statuses), source)


def test_required_statuses_are_there_also_when_nobody_reported_them():
    seen = reported(status("unit"), status("docs"))
    assert [(each.name, each.state) for each in seen.required] == [("unit", "success"), ("lint", "missing")]
    assert [each.name for each in seen.others] == ["docs"]
    assert seen.done == 1


def test_what_is_silent_when_the_run_is_over_stays_silent():
    seen = reported(status("unit", StatusState.PENDING), run=RunStatus.FAILED)
    assert [each.state for each in seen.required] == ["never", "never"]


def test_red_ones_are_to_blame_and_silent_ones_only_without_them():
    red = reported(status("unit", StatusState.FAILURE), run=RunStatus.FAILED)
    assert [each.name for each in red.culprits] == ["unit"]
    overdue = reported(status("unit"), run=RunStatus.FAILED)
    assert [each.name for each in overdue.culprits] == ["lint"]


def test_a_link_leads_to_the_reporter_or_where_we_ran_the_check_to_what_it_wrote():
    (there, _) = reported(status("unit", url="https://ci.example/7")).required
    assert (there.link, there.leads_outside) == ("https://ci.example/7", True)
    (here, _) = reported(status("unit", url="https://yard.example/x"), source=ChecksFrom.RUN).required
    assert (here.link, here.leads_outside) == ("/runs/run%20of%201/output/unit", False)


def test_an_address_that_leads_to_no_page_is_no_link():
    for url in ("javascript:alert(1)", "data:text/html,x", "//evil.example", "", "https://a\nb", "/runs"):
        assert reported(status("unit", url=url)).required[0].link is None
