"""Slack messages are short and mention no user; webhook signatures follow Standard Webhooks."""

import base64
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec import json
from msgspec.structs import replace
from standardwebhooks.webhooks import Webhook as Verifier
from standardwebhooks.webhooks import WebhookVerificationError

from mergeyard.domain.ids import PullRequestNumber
from mergeyard.domain.timestamps import Instant
from mergeyard.domain.webhooks import EventType
from mergeyard.service.webhooks import delivery
from mergeyard.service.webhooks.delivery import build_signature_headers, create_signing_secret
from mergeyard.service.webhooks.events import EventPayload, WebhookEvent


def a_payload(
    kind: str, *, title: str = "Count sheep", message: str = "It was so.", author: str = "ada"
) -> EventPayload:
    event = WebhookEvent(
        type=kind,
        timestamp="2026-11-14T10:16:02.000Z",
        repository="git.local/acme/app",
        target_branch="main",
        pr_number=PullRequestNumber(7) if kind.startswith("pull_request") else None,
        author=author,
        state="PAUSED",
        reason="because",
        details_url="https://mergeyard.example/x",
    )
    return EventPayload(event, message, title)


def slack_message(payload: EventPayload) -> dict[str, Any]:
    return json.decode(delivery.encode_slack_message(payload))


@pytest.mark.parametrize("kind", delivery.SLACK_HEADLINES)
def test_every_slack_message_is_one_line_with_a_link(kind: str):
    message = slack_message(a_payload(kind))
    assert message["text"].count("\n") == 0
    assert "{" not in message["text"]
    assert "<https://mergeyard.example/x|Details>" in message["blocks"][0]["text"]["text"]


def test_a_slack_message_about_a_pull_request_names_its_queue_and_reason():
    message = slack_message(a_payload(EventType.PR_MERGED))
    assert message["text"] == "🎉 #7 Count sheep by ada was merged"
    assert message["blocks"][1]["elements"][0]["text"] == "main of git.local/acme/app · because"


@pytest.mark.parametrize("kind", [EventType.QUEUE_STATE_CHANGED, EventType.QUEUE_UPDATED])
def test_an_audit_mismatch_is_an_alarm(kind: str):
    payload = a_payload(kind)
    alarm = replace(payload, event=replace(payload.event, reason="audit_mismatch"))
    assert (
        slack_message(alarm)["text"]
        == "🚨 main of git.local/acme/app: the target branch differs from the recorded merges"
    )


def test_a_slack_message_about_a_queue_names_its_state():
    assert (
        slack_message(a_payload(EventType.QUEUE_STATE_CHANGED))["text"] == "🚦 main of git.local/acme/app: now PAUSED"
    )


def test_text_from_others_mentions_no_user_and_contains_no_link():
    text = str(
        slack_message(
            a_payload(EventType.PR_FAILED, title="<!channel> <https://evil|x>", message="<@U1>", author="<!here>")
        )
    )
    assert not [mention for mention in ("<!channel>", "<https://evil", "<@U1>", "<!here>") if mention in text]


@pytest.mark.parametrize("mention", ["@channel", "@here", "@Everyone", "<!channel>"])
def test_a_title_does_not_mention_a_whole_channel(mention: str):
    message = slack_message(a_payload(EventType.PR_FAILED, title=f"Hurry {mention}"))
    assert mention not in str(message)
    texts = [block["text"] if "text" in block else block["elements"][0] for block in message["blocks"]]
    assert [text["verbatim"] for text in texts] == [True] * len(texts)


def test_a_long_message_is_truncated():
    text = slack_message(a_payload(EventType.PR_FAILED, message="word " * 5000))["blocks"][0]["text"]["text"]
    assert len(text) <= 3000
    assert text.endswith("… <https://mergeyard.example/x|Details>")


def test_an_empty_title_leaves_no_gap():
    assert slack_message(a_payload(EventType.PR_MERGED, title="", author=""))["text"] == "🎉 #7 was merged"


def now() -> Instant:
    return Instant(int(datetime.now(UTC).timestamp() * 1000))


def test_signatures_are_accepted_by_the_standard_webhooks_library():
    secret, body = create_signing_secret(), '{"type":"größe 試験"}'
    headers = build_signature_headers(secret, "msg_1", now(), body.encode())
    assert Verifier(secret).verify(body, headers) == {"type": "größe 試験"}


def test_changed_old_or_foreign_signatures_are_rejected():
    secret, body = create_signing_secret(), '{"a":1}'
    headers = build_signature_headers(secret, "msg_1", now(), body.encode())
    forged = [
        (secret, '{"a":2}', headers),
        (create_signing_secret(), body, headers),
        (secret, body, headers | {"webhook-id": "msg_2"}),
        (secret, body, headers | {"webhook-timestamp": str(int(headers["webhook-timestamp"]) - 1)}),
        (secret, body, build_signature_headers(secret, "msg_1", Instant(now() - 3_600_000), body.encode())),
    ]
    for key, content, signature_headers in forged:
        with pytest.raises(WebhookVerificationError):
            Verifier(key).verify(content, signature_headers)


def test_signing_secrets_are_long_and_unique():
    secrets = {create_signing_secret() for _ in range(100)}
    assert len(secrets) == 100
    assert {len(base64.b64decode(secret.removeprefix("whsec_"))) for secret in secrets} == {32}
