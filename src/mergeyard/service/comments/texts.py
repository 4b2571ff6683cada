"""All text that is shown on the Git host: comments, replies to commands, and our status.

Text from others (check names, messages of a host) is escaped, so that it mentions no user and has no markup.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from msgspec.structs import replace

from mergeyard.domain import ids
from mergeyard.domain.ids import PullRequestNumber, Sha
from mergeyard.domain.pull_requests import Requirement, Status, StatusState, Submission
from mergeyard.domain.states import LIVE_STATES, REASON_MESSAGES, REQUIREMENT_REASONS, PullRequestState, Reason
from mergeyard.domain.timestamps import SECOND, Instant, format_clock
from mergeyard.ports.forge import OWN_COMMENT_PREFIX
from mergeyard.service.views import MAX_REQUIREMENTS, SubmissionView, render_last_change, render_requirement

COMMENT_MARKER = f"{OWN_COMMENT_PREFIX} -->"
MAX_STATUS_CHARS = 140
"""The length of a status description that every forge shows."""
MAX_TITLE_PULL_REQUESTS = 10
MAX_TITLE_BRANCH_CHARS = 60
MAX_LISTED_BRANCHES = 10

COMMAND_PREFIXES = {"gitlab": "!merge"}
"""Per provider, where it is not the usual prefix: GitLab executes and removes lines that start with a slash."""
USUAL_COMMAND_PREFIX = "/merge"

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
HEADLINE_BRANCHES = {
    PullRequestState.NOT_READY: " for {}",
    PullRequestState.PENDING: " for {}",
    PullRequestState.TESTING: " for {}",
    PullRequestState.TESTS_PASSED: " for {}",
    PullRequestState.MERGED: " into {}",
}
"""How the target branch follows the label, where that makes a sentence."""
TESTED_STATES = QUEUED_STATES[1:]
"""A restart has an effect."""
RESUBMITTABLE_STATES = (PullRequestState.FAILED, PullRequestState.CANCELLED)
MOVED_AWAY_REASONS = (Reason.PR_CLOSED, Reason.PR_BASE_CHANGED)
"""A command cannot submit such a pull request to this queue again."""
QUEUED_DESCRIPTION = "In the merge queue."
FORCE_AND_URGENT_REFUSED = (
    "Only maintainers of this repository can use `--force` or `--priority urgent`. Ask one of them, or post the "
    "command without that option."
)
FORCE_REFUSED = (
    "Only maintainers of this repository can use `--force`. Ask one of them, or post the command without that option."
)
PERMISSIONS_UNREADABLE = (
    "The queue cannot read which users have write access to this repository. An administrator can run `mergeyard host "
    "check` to see which permission is missing."
)
COMMENT_EDITED = (
    "This comment was changed after it was posted, so the queue did not carry out its command: another user can have "
    "written it. Post the command in a new comment."
)
WRITE_ACCESS_REQUIRED = (
    "Only users with write access to this repository, and with permission to merge into this branch if it is "
    "protected, can use this command. Ask one of them."
)
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()<>+!|~&]|#(?!\d))")
_MENTIONS_AND_LINKS = re.compile(r'@(?=\S)|www(?=\.)|:(?=//)|[#!&$%~](?=[\w"])|\bGH-(?=\d)', re.IGNORECASE)
"""Plain text that forges turn into mentions, references and links. A reference, such as `acme/app#3`, leaves a note in
what it names."""


def command_prefix(provider: str) -> str:
    """What a command starts with at this kind of Git host."""
    return COMMAND_PREFIXES.get(provider, USUAL_COMMAND_PREFIX)


def render_comment(
    view: SubmissionView,
    *,
    batch: Iterable[PullRequestNumber] = (),
    failed_checks: Iterable[Status] = (),
    page_url: str = "",
    prefix: str = "",
    number_prefix: str = "#",
    written_at: Instant | None = None,
) -> str:
    """The state comment. `batch` has the pull requests of the run, including this one; `page_url` is empty if the
    service has no public address, `prefix` if the queue accepts no commands. The estimate is included only with
    `written_at`: it changes all the time, so the publisher compares texts without it."""
    state = view.submission.state
    headline = HEADLINES[state] + HEADLINE_BRANCHES.get(state, "").format(render_code(view.target_branch))
    position = f" · position {view.position}" if view.position else ""
    lines = [f"- Failed: {_render_link(status)}" for status in failed_checks]
    others = [f"{number_prefix}{number}" for number in batch if number != view.submission.number]
    if others:
        lines.append(f"- Tested together with {', '.join(others)}")
    estimate = view.estimated_merge_at
    if estimate is not None and written_at is not None:
        lines.append(f"- Expected to merge at about {_render_time(estimate)}, as of {format_clock(written_at)}")
    if state is PullRequestState.MERGED:
        lines += _describe_merge(view.submission)
    page_label = "Details and current position" if state in LIVE_STATES else "Details"
    page = f"[{page_label}]({page_url}) · " if page_url else ""
    commands = _render_commands(view, prefix) if prefix else ""
    return "\n".join(
        [
            COMMENT_MARKER,
            f"### {headline}{position}",
            "",
            _render_reason(view, number_prefix),
            *(["", *lines] if lines else []),
            "",
            f"{page}Reason: `{view.reason.code}`",
            *(["", commands] if commands else []),
            "",
        ]
    )


def _describe_merge(submission: Submission) -> list[str]:
    """Which commit merged, and whether the queue decided to push it to the author's branch. What the Git host did with
    that push is not part of the submission. Git hosts turn a full SHA into a link, also if no branch contains it."""
    commit, moved = submission.merged_sha, submission.moved_head
    if commit is None:
        return []
    lines = [f"- Commit: {commit}"]
    if moved is None or moved.commit != commit:
        return lines
    branch = render_code(submission.pull_request.head_branch)
    lines.append(
        f"- Unless the Git host refused, the queue force-pushed this commit to {branch}. "
        "Fetch the branch before you continue there."
    )
    head = submission.pull_request.head
    if head != commit:
        lines.append(
            f"- The reviewed head was {head}. After the force-push, the pull request no longer lists its commits."
        )
    return lines


def describe_requirement(requirement: Requirement) -> str:
    """Without the names of checks that run: these change with every check, and the Git host shows them on the same
    page."""
    if requirement.reason is Reason.WAITING_FOR_HEAD_CHECKS:
        return REASON_MESSAGES[requirement.reason]
    return render_requirement(requirement)


def _describe_reason(view: SubmissionView, number_prefix: str) -> str:
    """Without those that it was tested on top of, which become links."""
    unmet = view.submission.pull_request.unmet_requirements[:MAX_REQUIREMENTS]
    is_unmet = view.submission.state in LIVE_STATES and view.reason.code in REQUIREMENT_REASONS
    if is_unmet:
        return " ".join(map(describe_requirement, unmet))
    if view.submission.state in LIVE_STATES:
        return view.reason.message
    return render_last_change(replace(view.submission, stacked_on=()), number_prefix)


def _render_reason(view: SubmissionView, number_prefix: str) -> str:
    """The reason for waiting, or how the submission ended. Only our own references become links: the reason can contain
    text of others."""
    message = escape_markdown(_describe_reason(view, number_prefix))
    waiting = ", ".join(f"{number_prefix}{each}" for each in view.reason.waiting_for)
    ahead = ", ".join(f"{number_prefix}{each}" for each in view.submission.stacked_on)
    if ahead and view.submission.state not in LIVE_STATES:
        return f"{message} Tested on top of {ahead}."
    if not waiting:
        return message
    if view.reason.code is Reason.WAITING_FOR_PRS_AHEAD:
        return f"{message.removesuffix('.')}: {waiting}."
    return f"{message} Waiting for {waiting}."


def _render_commands(view: SubmissionView, prefix: str) -> str:
    """What a user with write access can do now."""
    submission = view.submission
    if view.reason.code is Reason.WAITING_FOR_MAINTAINER:
        head = submission.pull_request.head
        return f"A maintainer who reviewed the head can post `{prefix} {head}`. `{prefix} cancel` removes it."
    if submission.state in LIVE_STATES:
        is_tested = submission.state in TESTED_STATES
        other = f"`{prefix} restart` tests it again" if is_tested else f"`{prefix} --priority high` raises its priority"
        return f"Commands: `{prefix} cancel` removes this pull request from the queue, {other}."
    if submission.state in RESUBMITTABLE_STATES and submission.reason not in MOVED_AWAY_REASONS:
        head = " and the full SHA of the reviewed head" if submission.pull_request.fork else ""
        return f"Commands: `{prefix}`{head} submits this pull request again."
    return ""


def _render_time(instant: Instant) -> str:
    return f"{datetime.fromtimestamp(instant / SECOND, UTC):%Y-%m-%d %H:%M} UTC"


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


def build_closing_comment(branch: str, commit: Sha, *, has_new_commits: bool) -> str:
    """For a merged pull request that the Git host does not show as merged."""
    next_step = (
        "Commits that were pushed later are not part of it: open another pull request for them."
        if has_new_commits
        else "The Git host does not show it as merged, so the queue closed it. No action is needed."
    )
    merged = f"The queue merged this pull request into {render_code(branch)} as {commit}."
    return f"{OWN_COMMENT_PREFIX} closing -->\n{merged} {next_step}"


def build_not_moved_back_comment(branch: str, head: Sha) -> str:
    """For a head branch that the queue moved, or tried to move, for a merge that did not happen."""
    return (
        f"{OWN_COMMENT_PREFIX} not-moved-back -->\nThe queue tried to move the branch {render_code(branch)} for a "
        f"merge that did not happen, and cannot move it back. If the branch is not at {head}, push that commit to it "
        "with `git push --force-with-lease`, then submit the pull request again."
    )


def build_merging_status() -> Status:
    return Status(
        context=ids.STATUS_CONTEXT, state=StatusState.SUCCESS, at=Instant(0), description="Passed. Merging now."
    )


def build_not_merged_status() -> Status:
    return Status(context=ids.STATUS_CONTEXT, state=StatusState.PENDING, at=Instant(0), description="Not merged yet.")


# Replies to commands: the first line identifies the reply, so that a retry edits it instead of posting another one.


def render_reply(comment: str, user: str, detail: str) -> str:
    return f"{OWN_COMMENT_PREFIX} answers {comment} -->\n@{user} {detail}\n"


def render_state(view: SubmissionView, number_prefix: str = "#") -> str:
    return f"{HEADLINES[view.submission.state]}. {_render_reason(view, number_prefix)}"


def render_unknown_argument(argument: str, prefix: str) -> str:
    return f"I do not know {render_code(argument)}. {render_help(prefix)}"


def render_help(prefix: str) -> str:
    commands = {
        prefix: "submits this pull request",
        f"{prefix} <full SHA of the head>": "submits exactly this head; needed if it comes from a fork",
        f"{prefix} --priority urgent|high|medium|low": "submits it with this priority, or changes its priority",
        f"{prefix} --no-batch": "has it tested alone",
        f"{prefix} --force <full SHA of the head>": (
            "submits this head although rules of the Git host are not met; only for maintainers"
        ),
        f"{prefix} cancel": "removes it from the queue",
        f"{prefix} restart": "tests it again",
        f"{prefix} status": "replies with its state",
    }
    lines = [f"- `{command}` {effect}" for command, effect in commands.items()]
    return "\n".join(["The commands are:", "", *lines])


def render_head_required(command: str, *, has_mismatch: bool, is_fork: bool) -> str:
    """`command` names the current head."""
    advice = f"Review the current head, then post `{command}`."
    if has_mismatch:
        return f"That commit is not the head of this pull request. {advice}"
    if is_fork:
        return (
            "This pull request comes from a fork, so the command must name the head that you reviewed: its CI runs "
            f"with the secrets and the token of this repository. {advice}"
        )
    return f"`--force` skips reviews, so the command must name the head that you reviewed. {advice}"


def render_fork_label_refusal(head: Sha, prefix: str) -> str:
    return (
        "A label cannot submit a pull request from a fork, because it does not name the reviewed head. Review the "
        f"current head, then post `{prefix} {head}` instead."
    )


def render_no_queue(base_branch: str, queue_branches: Sequence[str]) -> str:
    """For a command on a pull request whose base branch has no queue."""
    listed = ", ".join(map(render_code, queue_branches[:MAX_LISTED_BRANCHES]))
    others = len(queue_branches) - MAX_LISTED_BRANCHES
    more = f" and {others} more" if others > 0 else ""
    return (
        f"No queue merges into {render_code(base_branch)}. Branches of this repository that have a queue: {listed}"
        f"{more}. Change the base branch of this pull request, or ask an administrator of Mergeyard to create a queue. "
        "Then post the command again."
    )


def render_draft_title(numbers: Sequence[PullRequestNumber], target_branch: str) -> str:
    """At most 240 characters: some forges allow 255, including a prefix for drafts. The numbers have no prefix: GitLab
    would leave a note in each merge request for every run."""
    branch, others = _truncate(target_branch, MAX_TITLE_BRANCH_CHARS), len(numbers) - MAX_TITLE_PULL_REQUESTS
    if not numbers:
        return f"[Mergeyard] Test {branch}"
    names = ", ".join(map(str, numbers[:MAX_TITLE_PULL_REQUESTS]))
    noun, more = "pull requests" if len(numbers) > 1 else "pull request", f" and {others} more" if others > 0 else ""
    return f"[Mergeyard] Test {noun} {names}{more} on {branch}"


def render_draft_text(numbers: Sequence[PullRequestNumber], number_prefix: str = "#") -> str:
    """The numbers are marked as code: a link would leave a reference in each pull request for every run."""
    tested = ", ".join(render_code(f"{number_prefix}{number}") for number in numbers) or "the target branch itself"
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
