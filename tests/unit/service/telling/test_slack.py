"""What is said in Slack is short, and what others wrote in it calls nobody."""

from typing import Any

import pytest
from msgspec import json
from msgspec.structs import replace

from mergeyard.domain.ids import PrNumber
from mergeyard.domain.webhooks import EventType
from mergeyard.service.telling import slack
from mergeyard.service.telling.events import Event, Story


def a_story(kind: str, *, title: str = "Count sheep", message: str = "It was so.", author: str = "ada") -> Story:
    event = Event(
        type=kind,
        timestamp="2026-11-14T10:16:02.000Z",
        repository="git.local/acme/app",
        target_branch="main",
        pr_number=PrNumber(7) if kind.startswith("pull_request") else None,
        author=author,
        state="PAUSED",
        reason="because",
        details_url="https://yard.example/x",
    )
    return Story(event, message, title)


def said(story: Story) -> dict[str, Any]:
    return json.decode(slack.message(story))


@pytest.mark.parametrize("kind", slack.HEADLINES)
def test_every_event_is_said_in_one_line_with_a_link_to_more(kind: str):
    message = said(a_story(kind))
    assert message["text"].count("\n") == 0
    assert "{" not in message["text"]
    assert "<https://yard.example/x|Details>" in message["blocks"][0]["text"]["text"]


def test_a_pull_request_is_named_with_its_queue_and_reason():
    message = said(a_story(EventType.PR_MERGED))
    assert message["text"] == "🎉 #7 Count sheep by ada was merged"
    assert message["blocks"][1]["elements"][0]["text"] == "main of git.local/acme/app · because"


@pytest.mark.parametrize("kind", [EventType.QUEUE_STATE_CHANGED, EventType.QUEUE_UPDATED])
def test_what_is_found_wrong_with_landings_is_an_alarm(kind: str):
    story = a_story(kind)
    alarm = replace(story, event=replace(story.event, reason="audit_mismatch"))
    assert said(alarm)["text"] == "🚨 main of git.local/acme/app: what landed is not as recorded"


def test_a_queue_is_named_with_its_state():
    assert said(a_story(EventType.QUEUE_STATE_CHANGED))["text"] == "🚦 main of git.local/acme/app: now PAUSED"


def test_what_others_wrote_calls_nobody_and_links_nowhere():
    text = str(
        said(a_story(EventType.PR_FAILED, title="<!channel> <https://evil|x>", message="<@U1>", author="<!here>"))
    )
    assert not [call for call in ("<!channel>", "<https://evil", "<@U1>", "<!here>") if call in text]


@pytest.mark.parametrize("call", ["@channel", "@here", "@Everyone", "<!channel>"])
def test_a_title_does_not_call_a_whole_channel(call: str):
    message = said(a_story(EventType.PR_FAILED, title=f"Hurry {call}"))
    assert call not in str(message)
    texts = [block["text"] if "text" in block else block["elements"][0] for block in message["blocks"]]
    assert [text["verbatim"] for text in texts] == [True] * len(texts)


def test_a_long_message_fits():
    text = said(a_story(EventType.PR_FAILED, message="word " * 5000))["blocks"][0]["text"]["text"]
    assert len(text) <= 3000
    assert text.endswith("… <https://yard.example/x|Details>")


def test_an_empty_title_leaves_no_gap():
    assert said(a_story(EventType.PR_MERGED, title="", author=""))["text"] == "🎉 #7 was merged"
