"""All text that is shown on the Git host: comments, replies to commands, and our status.

Text from others (check names, messages of a host) is escaped, so that it mentions no user and has no markup.
"""

import re
from collections.abc import Iterable, Sequence

from mergeyard.domain import ids
from mergeyard.domain.ids import PullRequestNumber, Sha
from mergeyard.domain.pull_requests import Status, StatusState
from mergeyard.domain.states import PullRequestState
from mergeyard.domain.timestamps import Instant
from mergeyard.service.views import SubmissionView

COMMENT_MARKER_PREFIX = "<!-- mergeyard"
"""The start of every text that we post."""
COMMENT_MARKER = f"{COMMENT_MARKER_PREFIX} -->"
MAX_STATUS_CHARS = 140
"""The length of a status description that every forge shows."""
MAX_TITLE_PULL_REQUESTS = 10
MAX_TITLE_BRANCH_CHARS = 60

HEADLINES = {
    PullRequestState.NOT_READY: "⏳ Not ready",
    PullRequestState.PENDING: "🕒 Queued",
    PullRequestState.TESTING: "🧪 Testing",
    PullRequestState.TESTS_PASSED: "✅ Passed",
    PullRequestState.PENDING_FAILURE: "🔎 Failing, cause not confirmed",
    PullRequestState.FAILED: "❌ Failed",
    PullRequestState.CANCELLED: "🚫 Removed",
    PullRequestState.MERGED: "🎉 Merged",
}
STATUS_STATES = {
    PullRequestState.FAILED: StatusState.FAILURE,
    PullRequestState.CANCELLED: StatusState.ERROR,
    PullRequestState.MERGED: StatusState.SUCCESS,
}
QUEUED_STATES = (
    PullRequestState.PENDING,
    PullRequestState.TESTING,
    PullRequestState.TESTS_PASSED,
    PullRequestState.PENDING_FAILURE,
)
QUEUED_DESCRIPTION = "In the merge queue."
USAGE = (
    "Post `!merge` to submit this pull request (`--priority urgent|high|medium|low`, `--no-batch`, `--force`), "
    "`!merge` and the full SHA of its head if it comes from a fork, or `!merge cancel`, `!merge restart`, "
    "`!merge status`."
)
MAINTAINER_REQUIRED = (
    "Only maintainers of this repository can use `--force` or `--priority urgent`. Ask one of them, or post it "
    "without that option."
)
PERMISSIONS_UNREADABLE = (
    "The queue cannot read which users have write access to this repository. `mergeyard host check` shows the missing "
    "permission."
)
WRITE_ACCESS_REQUIRED = (
    "Only users with write access to this repository, and with permission to merge into this branch if it is "
    "protected, can use this command. Ask one of them."
)
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()<>+!|~&]|#(?!\d))")
_MENTIONS_AND_LINKS = re.compile(r"@(?=\w)|www(?=\.)|:(?=//)", re.IGNORECASE)
"""Plain text that forges turn into mentions and links."""


def render_comment(
    view: SubmissionView,
    *,
    batch: Iterable[PullRequestNumber] = (),
    failed_checks: Iterable[Status] = (),
    page_url: str = "",
) -> str:
    """The state comment. `batch` has the pull requests of the run, including this one; `page_url` is empty if the
    service has no public address."""
    position = (
        f" · position {view.position} in the queue for {escape_markdown(view.target_branch)}" if view.position else ""
    )
    lines = [f"- Failed: {_render_link(status)}" for status in failed_checks]
    others = [f"#{number}" for number in batch if number != view.submission.number]
    if others:
        lines.append(f"- Tested together with {', '.join(others)}")
    return "\n".join(
        [
            COMMENT_MARKER,
            f"### {HEADLINES[view.submission.state]}{position}",
            "",
            _render_reason(view),
            *(["", *lines] if lines else []),
            "",
            f"`{view.reason.code}`" + (f" · [details]({page_url})" if page_url else ""),
            "",
        ]
    )


def _render_reason(view: SubmissionView) -> str:
    """The reason for waiting, or how the submission ended."""
    waiting = ", ".join(f"#{number}" for number in view.reason.waiting_for)
    return escape_markdown(view.reason.message) + (f" Waiting for {waiting}." if waiting else "")


def build_status(view: SubmissionView, page: str) -> Status:
    """The description does not change while the pull request is queued: forges limit writes, and the comment has the
    details."""
    submission = view.submission
    label = HEADLINES[submission.state].partition(" ")[2]
    is_queued = submission.state in QUEUED_STATES
    return Status(
        context=ids.STATUS_CONTEXT,
        state=STATUS_STATES.get(submission.state, StatusState.PENDING),
        at=submission.state_changed_at,
        url=page,
        description=QUEUED_DESCRIPTION if is_queued else _truncate(f"{label}. {view.reason.message}"),
    )


def build_merging_status() -> Status:
    return Status(
        context=ids.STATUS_CONTEXT, state=StatusState.SUCCESS, at=Instant(0), description="Passed. Merging now."
    )


def build_not_merged_status() -> Status:
    return Status(context=ids.STATUS_CONTEXT, state=StatusState.PENDING, at=Instant(0), description="Not merged yet.")


# Replies to commands: the first line identifies the reply, so that a retry edits it instead of posting another one.


def render_reply(comment: str, user: str, detail: str) -> str:
    return f"{COMMENT_MARKER_PREFIX} answers {comment} -->\n@{user} {detail}\n"


def render_state(view: SubmissionView) -> str:
    return f"{HEADLINES[view.submission.state]}. {_render_reason(view)}"


def render_unknown_argument(argument: str) -> str:
    return f"Unknown argument {render_code(argument)}. {USAGE}"


def render_head_required(head: Sha, *, has_mismatch: bool) -> str:
    if has_mismatch:
        return f"That commit is not the head of this pull request. Review the current head, then post `!merge {head}`."
    return (
        "This pull request comes from a fork, so the command must name the head that you reviewed: its CI runs with "
        f"the secrets and the token of this repository. Review the current head, then post `!merge {head}`."
    )


def render_fork_label_refusal(head: Sha) -> str:
    return (
        "A label cannot submit a pull request from a fork, because it does not name the reviewed head. Review the "
        f"current head, then post !merge {head} instead."
    )


def render_draft_title(numbers: Sequence[PullRequestNumber], target_branch: str) -> str:
    """At most 240 characters: some forges allow 255, including a prefix for drafts."""
    branch, others = _truncate(target_branch, MAX_TITLE_BRANCH_CHARS), len(numbers) - MAX_TITLE_PULL_REQUESTS
    names = ", ".join(f"#{number}" for number in numbers[:MAX_TITLE_PULL_REQUESTS]) or branch
    return f"[Mergeyard] Test {names}{f' and {others} more' if others > 0 else ''} on {branch}"


def render_draft_text(numbers: Sequence[PullRequestNumber]) -> str:
    tested = ", ".join(f"#{number}" for number in numbers) or "the target branch itself"
    return f"Tests {tested} as it would be merged. This draft closes automatically: do not merge, push or comment here."


# Escaping.


def escape_markdown(text: str) -> str:
    """Escapes Markdown, mentions and links, so that the text is shown as written."""
    return _MENTIONS_AND_LINKS.sub("\\g<0>\u200b", _MARKDOWN.sub(r"\\\1", " ".join(text.split())))


def render_code(text: str) -> str:
    return f"`{_truncate(' '.join(text.split())).replace('`', '')}`"


def _render_link(status: Status) -> str:
    is_safe = status.url.startswith(("https://", "http://")) and not set(status.url) & set(" <>()[]\"'\\")
    return f"[{escape_markdown(status.context)}]({status.url})" if is_safe else escape_markdown(status.context)


def _truncate(text: str, max_chars: int = MAX_STATUS_CHARS) -> str:
    return text if len(text) <= max_chars else text[: max_chars - 1] + "…"
