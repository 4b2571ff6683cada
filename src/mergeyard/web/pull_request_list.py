"""The list of all pull requests, waiting and past, of one queue or of all that the user can see, with a search."""

from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import quote, urlencode

from msgspec import Struct
from starlette.responses import RedirectResponse, Response

from mergeyard.domain.ids import QueueKey, RunId
from mergeyard.domain.pull_requests import Submission
from mergeyard.domain.states import TERMINAL_STATES, Reason
from mergeyard.domain.timestamps import DAY, Instant, later
from mergeyard.service.submission_queries import FoundSubmission, StateFilter, SubmissionPage, SubmissionSearch
from mergeyard.service.views import render_last_change
from mergeyard.web.formats import format_queue_name, parse_integer
from mergeyard.web.rendering import AUTHOR_COOKIE, PageRequest

PATH = "/pulls"
ROWS_PER_PAGE = 50
MAX_PAGE = 10_000
MAX_TEXT_LENGTH = 200

ME = "@me"
"""As the author: the user's own pull requests."""
AUTHOR_COOKIE_MAX_AGE_S = 365 * 24 * 3600

STATE_LABELS = {
    StateFilter.ALL: "All",
    StateFilter.OPEN: "In the queue",
    StateFilter.WAITING: "Waiting",
    StateFilter.TESTING: "Testing",
    StateFilter.NOT_READY: "Not ready",
    StateFilter.FINISHED: "Finished",
    StateFilter.MERGED: "Merged",
    StateFilter.FAILED: "Failed",
    StateFilter.CANCELLED: "Removed",
}
PERIODS = {"all": None, "24h": DAY, "7d": 7 * DAY, "30d": 30 * DAY}
PERIOD_LABELS = {"all": "Any time", "24h": "Last 24 hours", "7d": "Last 7 days", "30d": "Last 30 days"}


def pull_requests_url(key: QueueKey | None = None, state: str = "") -> str:
    """The list, limited to a queue and a state filter."""
    chosen = {"queue": "" if key is None else format_queue_name(key), "state": state}
    return _build_url(chosen)


def _build_url(parameters: Mapping[str, str]) -> str:
    query = urlencode({name: value for name, value in parameters.items() if value}, safe="/:@")
    return f"{PATH}?{query}" if query else PATH


class Filters(Struct, frozen=True, kw_only=True):
    """What the address selects. A value that is not known counts as not given."""

    q: str
    state: StateFilter
    author: str
    queue: str
    since: str
    begin: Instant | None = None
    """The parameters `from` and `to` of links that count pull requests; they replace `since`."""
    end: Instant | None = None
    page: int

    @property
    def is_fixed(self) -> bool:
        """Whether it selects what ended in a fixed period, so that the list does not change any more."""
        return self.end is not None

    def to_url(self, **changes: str) -> str:
        """Without `page` in the changes: the first page."""
        since = "" if self.since == "all" else self.since
        chosen = {"q": self.q, "state": self.state.value, "author": self.author, "queue": self.queue, "since": since}
        return _build_url(chosen | self.period_parameters | changes)

    @property
    def period_parameters(self) -> dict[str, str]:
        times = {"from": self.begin, "to": self.end}
        return {name: format_exact_time(at) for name, at in times.items() if at is not None}

    @property
    def are_default(self) -> bool:
        return self.to_url() == PATH


def read_filters(query: Mapping[str, str]) -> Filters:
    state, since = query.get("state", ""), query.get("since", "all")
    return Filters(
        q=query.get("q", "").strip()[:MAX_TEXT_LENGTH],
        state=StateFilter(state) if state in STATE_LABELS else StateFilter.ALL,
        author=query.get("author", "").strip()[:MAX_TEXT_LENGTH],
        queue=query.get("queue", ""),
        since=since if since in PERIODS else "all",
        begin=_parse_exact_time(query.get("from", "")),
        end=_parse_exact_time(query.get("to", "")),
        page=parse_integer(query.get("page", ""), 1, MAX_PAGE) or 1,
    )


def format_exact_time(at: Instant) -> str:
    """To the millisecond, so that a list contains exactly what was counted."""
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _parse_exact_time(text: str) -> Instant | None:
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return None
    if parsed.tzinfo is None:
        parsed = parsed.replace(tzinfo=UTC)
    return Instant(max(0, round(parsed.timestamp() * 1000)))


class Row(Struct, frozen=True, kw_only=True):
    found: FoundSubmission
    has_ended: bool
    message: str
    failing_checks: tuple[str, ...]

    @property
    def submission(self) -> Submission:
        return self.found.view.submission

    @property
    def waits_for_queue(self) -> bool:
        return self.found.view.is_ready_while_not_running

    @property
    def deciding_run(self) -> RunId | None:
        return find_last_run(self.submission)

    @property
    def ms_in_queue(self) -> int:
        return measure_time_in_queue(self.submission)


async def show(page: PageRequest) -> Response:
    filters = read_filters(page.query)
    key = page.resolve_queue(filters.queue) if filters.queue else None
    own_name = page.own_name
    found = await _search(page, filters, key, own_name)
    visible = await page.service.registry.list_visible(page.user.token)
    return page.render(
        "pull_request_list.html",
        filters=filters,
        key=key,
        own_name=own_name,
        queue_names=sorted(format_queue_name(queue_actor.key) for queue_actor in visible),
        state_labels=STATE_LABELS,
        period_labels=PERIOD_LABELS,
        found=found,
        rows=[await _build_row(page, each) for each in found.rows],
        first=(filters.page - 1) * ROWS_PER_PAGE + 1,
    )


async def _search(page: PageRequest, filters: Filters, key: QueueKey | None, own_name: str) -> SubmissionPage:
    period = PERIODS[filters.since]
    since = Instant(0) if period is None else later(page.service.clock.now(), -period)
    search = SubmissionSearch(
        queue=key,
        text=filters.q,
        author=own_name if filters.author == ME else filters.author,
        state=filters.state,
        since=since if filters.begin is None else filters.begin,
        until=filters.end,
        offset=(filters.page - 1) * ROWS_PER_PAGE,
        take=ROWS_PER_PAGE,
    )
    return await page.service.submission_queries.search(page.user.token, search)


async def _build_row(page: PageRequest, found: FoundSubmission) -> Row:
    submission = found.view.submission
    has_ended = submission.state in TERMINAL_STATES
    message = describe_end(submission) if has_ended else found.view.reason.message
    failing_checks = await page.service.runs.read_failing_checks(found.key, submission)
    return Row(found=found, has_ended=has_ended, message=message, failing_checks=failing_checks)


def describe_end(submission: Submission) -> str:
    """Why a pull request left the queue; empty if it merged as tested."""
    if submission.reason is Reason.MERGED_BY_QUEUE:
        return ""
    return render_last_change(submission)


def find_last_run(submission: Submission) -> RunId | None:
    """The run that verified it, else the last one that tested it."""
    return submission.verified_by or submission.run


def measure_time_in_queue(submission: Submission) -> int:
    """From the admission, as the health page counts it, else from the submission, to the end."""
    return submission.state_changed_at - (submission.admitted_at or submission.submitted_at)


async def save_own_name(page: PageRequest) -> Response:
    """Saves the user's name on the Git host in the browser, and shows the user's pull requests. An empty name deletes
    the saved one."""
    response = RedirectResponse(read_filters(page.form.to_dict()).to_url(author=ME), 303)
    name = page.form.get("me")[:MAX_TEXT_LENGTH]
    response.set_cookie(
        AUTHOR_COOKIE,
        quote(name, safe=""),
        max_age=AUTHOR_COOKIE_MAX_AGE_S if name else 0,
        path="/",
        httponly=True,
        samesite="lax",
        secure=page.context.over_tls,
    )
    return response
