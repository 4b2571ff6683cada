"""Every word that we say in Slack: one short message per event."""

import re
from typing import Any

import msgspec

from mergeyard.domain.reasons import Reason
from mergeyard.domain.webhooks import TEST, EventType
from mergeyard.service.telling.events import Story

HEADLINES: dict[str, str] = {
    EventType.PR_SUBMITTED: "⏳ {pull} was submitted, but is not ready yet",
    EventType.PR_QUEUED: "🕒 {pull} is in the queue",
    EventType.PR_TESTING: "🧪 {pull} is being tested",
    EventType.PR_TESTS_PASSED: "✅ {pull} passed its tests",
    EventType.PR_PENDING_FAILURE: "🔎 {pull} failed its tests, the cause is not known yet",
    EventType.PR_FAILED: "❌ {pull} failed",
    EventType.PR_CANCELLED: "🚫 {pull} left the queue",
    EventType.PR_MERGED: "🎉 {pull} was merged",
    EventType.QUEUE_CREATED: "🚂 {queue}: created",
    EventType.QUEUE_UPDATED: "🔧 {queue}: settings changed",
    EventType.QUEUE_DELETED: "🗑️ {queue}: deleted",
    EventType.QUEUE_STATE_CHANGED: "🚦 {queue}: now {state}",
    TEST: "👋 Mergeyard can write here",
}
ALARMS: dict[str | None, str] = {
    Reason.TREE_MISMATCH: "🚨 {queue}: what landed is not what was tested",
    Reason.AUDIT_MISMATCH: "🚨 {queue}: what landed is not as recorded",
}
"""Of the queue itself: these say more than the state that it is in now."""
BROADCAST = re.compile(r"@(?=channel|here|everyone|group)", re.IGNORECASE)
"""Calls all members of a channel, unless a character that is not seen stands behind the @."""
LONGEST_TITLE = 150
LONGEST_MESSAGE = 2000
"""Slack refuses a section of more than 3000 characters."""


def message(story: Story) -> bytes:
    event = story.event
    alarm = None if event.pr_number else ALARMS.get(event.reason)
    headline = (alarm or HEADLINES[event.type]).format(pull=_pull(story), queue=_queue(story), state=event.state)
    footer = " · ".join(part for part in (_queue(story) if event.pr_number else "", event.reason or "") if part)
    details = _section(
        f"*{headline}*\n{quoted(_shortened(story.message, LONGEST_MESSAGE))} <{event.details_url}|Details>"
    )
    return msgspec.json.encode({"text": headline, "blocks": [details, *([_context(footer)] if footer else [])]})


def _pull(story: Story) -> str:
    event = story.event
    author = f" by {quoted(event.author)}" if event.author else ""
    return f"#{event.pr_number} {quoted(_shortened(story.title, LONGEST_TITLE))}".strip() + author


def _queue(story: Story) -> str:
    event = story.event
    return f"{quoted(event.target_branch or '')} of {quoted(event.repository or '')}"


def _section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": _markup(text)}


def _context(text: str) -> dict[str, Any]:
    return {"type": "context", "elements": [_markup(text)]}


def _markup(text: str) -> dict[str, Any]:
    """Verbatim: Slack makes no links and no mentions of plain names and addresses in it."""
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def _shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def quoted(text: str) -> str:
    """What others wrote calls nobody and links nowhere."""
    plain = BROADCAST.sub("@\u200b", " ".join(text.split()))
    return plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
