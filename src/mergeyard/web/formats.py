"""Formats values for pages: labels of states, durations, times, counts, lists of impacted targets, and URLs.

The tables of labels are the only place where a page gets the word for a state.
"""

import re
from datetime import UTC, datetime
from heapq import nsmallest
from urllib.parse import quote

from msgspec import Struct
from starlette.types import Scope as ASGIScope

from mergeyard.domain.ids import PullRequestNumber, QueueKey, Repo, RunId, SubmissionId
from mergeyard.domain.pull_requests import ImpactedTargets
from mergeyard.domain.states import Reason
from mergeyard.domain.timestamps import MINUTE, SECOND, Instant, format_duration, round_to
from mergeyard.service.errors import Code, RequestRefused

PULL_REQUEST_STATE_LABELS = {
    "not_ready": "Not ready",
    "pending": "Queued",
    "testing": "Testing",
    "tests_passed": "Passed",
    "pending_failure": "Failing, cause not confirmed",
    "merged": "Merged",
    "failed": "Failed",
    "cancelled": "Removed",
}


REASON_LABELS = {
    Reason.MERGED_BY_QUEUE: "by the queue",
    Reason.MERGED_DIRECTLY: "without new tests",
    Reason.MERGED_MANUALLY: "outside the queue",
    Reason.MERGED_WITH_ANOTHER: "as a part of another one",
    Reason.TREE_MISMATCH: "result differs from the tested one",
    Reason.TEST_RUN_FAILED: "required check failed",
    Reason.TEST_RUN_TIMEOUT: "test run timed out",
    Reason.FAILED_BY_OPTIMIZATION: "culprit of a failed batch",
    Reason.MERGE_CONFLICT: "conflicts with the target branch",
    Reason.CONTAINS_REMOVED_COMMIT: "contains a removed commit",
    Reason.NOTHING_TO_MERGE: "changes nothing",
    Reason.PR_TOO_LARGE: "exceeds a limit",
    Reason.INVALID_TREE: "Git refuses its files",
    Reason.CONFIG_INVALID: ".mergeyard.toml is invalid",
    Reason.REBASE_DIFFERS: "rebase differs from the merge",
    Reason.BREAKS_CONFIG: "makes .mergeyard.toml invalid",
    Reason.START_REFUSED: "Git host refused the test branch",
    Reason.MERGE_REFUSED: "Git host refused the merge",
    Reason.CANCELLED_BY_USER: "a user removed it",
    Reason.PR_CLOSED: "pull request closed",
    Reason.PR_PUSHED: "new commits pushed",
    Reason.HEAD_NOT_MOVED_BACK: "head branch not moved back",
    Reason.PR_BASE_CHANGED: "base branch changed",
    Reason.PR_CONVERTED_TO_DRAFT: "converted to a draft",
    Reason.NOT_READY_TIMEOUT: "not ready for too long",
    Reason.LANDING_UNKNOWN: "merge not confirmed",
    Reason.PREREQUISITE_REMOVED: "pull request no longer ahead",
    Reason.TARGET_BRANCH_MOVED: "target branch moved",
    Reason.SKIP_THE_LINE_INTERRUPTED: "urgent pull request went ahead",
    Reason.MADE_URGENT: "made urgent",
    Reason.ORDER_CHANGED: "order ahead changed",
    Reason.DEPENDENCIES_CHANGED: "depends on others than before",
    Reason.CONTAINS_WAITING_PR: "contains a pull request that waits",
    Reason.CONFLICTS_WITH_PR_AHEAD: "conflicts with a pull request ahead",
    Reason.BATCHMATE_REMOVED: "pull request of the same batch left",
    Reason.BASE_BROKEN: "target branch itself fails",
    Reason.BISECTION: "bisection of a failed batch",
    Reason.BISECTION_LEFT_OUT: "batch failed without it",
    Reason.BISECTION_PASSED: "passed in the bisection",
    Reason.CLEARANCE_WITHDRAWN: "later run no longer counts",
    Reason.OPTIMISTIC_MERGING_OFF: "optimistic merging turned off",
    Reason.RUN_AHEAD_STOPPED: "run ahead stopped",
    Reason.RUN_REPLACED: "another run counts",
    Reason.TEST_BRANCH_NOT_BUILT: "test branch not built",
    Reason.TEST_BRANCH_MOVED: "test branch moved",
    Reason.BASE_COMMIT_MISSING: "base commit missing",
    Reason.TARGET_BRANCH_MISSING: "target branch missing",
    Reason.NO_REQUIRED_STATUSES: "no required checks",
    Reason.MODE_SWITCHED: "queue switched modes",
    Reason.QUEUE_RESUMED: "failed while the queue was paused",
    Reason.REQUIRED_STATUSES_CHANGED: "required checks changed",
    Reason.TESTS_RESTARTED: "a user restarted the tests",
    Reason.PRIORITY_CHANGED: "priority changed",
    Reason.FORCED: "forced",
    Reason.FORCE_WITHDRAWN: "no longer forced",
    Reason.UNBATCHED: "tested alone",
    Reason.BATCHING_ALLOWED: "tested with others",
    Reason.GUARDED_PATHS_APPROVED: "guarded paths approved",
    Reason.BASE_TEST_RESTARTED: "test of the target branch restarted",
}
"""The reasons for an end, a restart or an update, in a few words that follow the label of the state."""


REQUIREMENT_LABELS = {
    Reason.CHANGES_REQUESTED: "Requested changes",
    Reason.WAITING_FOR_REVIEW: "Approvals",
    Reason.WAITING_FOR_CODE_OWNER: "Code owners",
    Reason.WAITING_FOR_LAST_PUSH_APPROVAL: "Approval of the last push",
    Reason.WAITING_FOR_CONVERSATIONS: "Review conversations",
    Reason.HEAD_CHECKS_FAILED: "Failed checks of the pull request itself",
    Reason.WAITING_FOR_HEAD_CHECKS: "Checks of the pull request itself",
    Reason.WAITING_FOR_DEPLOYMENTS: "Deployments",
    Reason.BLOCKED_BY_HOST_RULE: "Another rule of the Git host",
    Reason.COMMITS_UNSIGNED: "Signed commits",
    Reason.SIGNING_KEY_NOT_ACCEPTED: "The signing key of the queue",
    Reason.HOST_RULE_UNREADABLE: "A rule that cannot be read",
}
"""What a rule of the Git host is about, in the list of requirements."""


def format_reason(reason: str) -> str:
    """An old journal can have a reason that no longer exists."""
    return REASON_LABELS[Reason(reason)] if reason in REASON_LABELS else reason.replace("_", " ")


QUEUE_STATE_LABELS = {
    "RUNNING": "Running",
    "PAUSED": "Paused",
    "DRAINING": "Draining",
    "SWITCHING_MODES": "Switching modes",
}


RUN_STATE_LABELS = {
    "preparing": "Preparing",
    "in_progress": "Testing",
    "succeeded": "Passed",
    "failed": "Failed",
    "cancelled": "Stopped",
}


CHECK_STATE_LABELS = {
    "success": "passed",
    "skipped": "skipped",
    "neutral": "neutral",
    "failure": "failed",
    "error": "error",
    "pending": "running",
    "missing": "pending",
    "never": "not reported",
    "unfinished": "not finished",
}


def format_time_ago(instant: Instant | None, now: Instant) -> str:
    if instant is None:
        return "–"
    return "just now" if now - instant < 5 * SECOND else f"{format_duration(now - instant)} ago"


def format_time_until(instant: Instant | None, now: Instant) -> str:
    """For estimates: `now`, `~55 s`, `~3 h 10 min`. An estimate of minutes is not exact to the second."""
    if instant is None:
        return "not known yet"
    remaining = instant - now
    step = MINUTE if remaining >= 10 * MINUTE else 10 * SECOND if remaining >= MINUTE else SECOND
    return "now" if remaining < 5 * SECOND else f"~{format_duration(round_to(remaining, step))}"


def format_iso_time(instant: Instant | None) -> str:
    """ISO 8601 in UTC, for `datetime` attributes and exports; page.js shows it in the browser's time zone."""
    if instant is None:
        return ""
    return datetime.fromtimestamp(instant / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def format_timestamp(instant: Instant | None) -> str:
    """For people, exact to the second: 15 Nov 2026, 14:40:12 UTC."""
    return "–" if instant is None else f"{datetime.fromtimestamp(instant / 1000, UTC):%-d %b %Y, %H:%M:%S} UTC"


def format_time_of_day(instant: Instant | None) -> str:
    """For `<time data-clock>`: without scripts the text is UTC, and says so."""
    return "–" if instant is None else f"{datetime.fromtimestamp(instant / 1000, UTC):%H:%M} UTC"


def shorten_id(sha: str | None) -> str:
    """The first 8 characters of a commit or run id."""
    return (sha or "–")[:8]


BIDI_CONTROLS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def strip_bidi_controls(text: str) -> str:
    """For places where `<bdi>` cannot isolate the text, such as `<title>`: it must not reverse what follows it."""
    return BIDI_CONTROLS.sub("", text)


def pluralize(number: int, noun: str, nouns: str = "") -> str:
    """The number with its noun: 1 check, 2 checks."""
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"


MAX_LISTED_TARGETS = 50


class TargetList(Struct, frozen=True):
    names: tuple[str, ...]
    more: int
    everything: bool

    @property
    def is_empty(self) -> bool:
        return not self.everything and not self.names


def list_targets(targets: ImpactedTargets, limit: int = MAX_LISTED_TARGETS) -> TargetList:
    if targets.everything:
        return TargetList((), 0, everything=True)
    return TargetList(tuple(nsmallest(limit, targets.names)), max(0, len(targets.names) - limit), everything=False)


def current_url(scope: ASGIScope) -> str:
    """The path and query as the client sent them. The decoded path would lose which characters were percent-encoded."""
    path, query = scope["raw_path"].decode("ascii"), scope["query_string"].decode("ascii")
    return f"{path}?{query}" if query else path


def format_queue_name(key: QueueKey) -> str:
    return f"{key.repo}:{key.branch}"


def queue_url(key: QueueKey, page: str = "queues") -> str:
    return f"/{page}/{quote(format_queue_name(key), safe='/:')}"


def pull_request_url(key: QueueKey, number: PullRequestNumber) -> str:
    return f"/pulls/{quote(str(key.repo))}/{number}?branch={quote(key.branch, safe='')}"


def actions_url(key: QueueKey, number: PullRequestNumber) -> str:
    """The page that offers the actions for a pull request."""
    return f"/actions?queue={quote(format_queue_name(key), safe='')}&number={number}"


def submission_url(key: QueueKey, number: PullRequestNumber, submission_id: SubmissionId) -> str:
    """The pull request page for one submission, which need not be the latest."""
    return f"{pull_request_url(key, number)}&submission={submission_id}"


def timeline_url(key: QueueKey, number: PullRequestNumber, submission_id: SubmissionId, first: int) -> str:
    """The part of a long timeline that ends with entry number `first`, counted from the oldest."""
    return f"{submission_url(key, number, submission_id)}&first={first}#timeline"


def run_url(run: RunId) -> str:
    return f"/runs/{quote(run)}"


def check_output_url(run: RunId, check: str) -> str:
    return f"{run_url(run)}/output/{quote(check, safe='')}"


def safe_external_url(url: str) -> str | None:
    """A URL from outside (a Git host, a CI system) if it is safe as a link: http or https only, no `javascript:`."""
    return url if url.lower().startswith(("https://", "http://")) and url.isprintable() else None


def parse_integer(text: str, minimum: int, maximum: int) -> int | None:
    """None if the text has other characters than ASCII digits, or the number is out of the range."""
    is_number = text.isascii() and text.isdecimal() and len(text) < 20
    return int(text) if is_number and minimum <= int(text) <= maximum else None


def parse_number(text: str) -> PullRequestNumber | None:
    number = parse_integer(text, 1, 2**31 - 1)
    return None if number is None else PullRequestNumber(number)


def parse_repo(text: str) -> Repo:
    repo = Repo.parse(text)
    if repo is None:
        raise page_not_found()
    return repo


def parse_queue_name(text: str) -> QueueKey:
    repo, _, branch = text.rpartition(":")
    if not branch:
        raise page_not_found()
    return QueueKey(parse_repo(repo), branch)


def page_not_found() -> RequestRefused:
    return RequestRefused(
        Code.NOT_FOUND, "There is no page at this address. The queues page lists all queues you can see."
    )


def to_local_url(url: str) -> str:
    """The URL if it is a path on this server, else "/": a link to the sign-in page must not redirect to another site.

    Browsers read `//host` and `/\\host` as another host.
    """
    is_local = url.startswith("/") and not url.startswith(("//", "/\\"))
    return url if is_local and url.isprintable() else "/"
