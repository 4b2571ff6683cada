"""The page about events names every type, every member and every endpoint, and no other."""

import re
from pathlib import Path

from msgspec import json

from mergeyard.api.routes import TABLE
from mergeyard.domain.webhooks import EventType
from mergeyard.service.telling.events import Event
from mergeyard.service.telling.slack import HEADLINES

PAGE = (Path(__file__).parents[2] / "docs" / "webhooks.md").read_text()


def first_cells(heading: str) -> list[str]:
    (table,) = re.findall(rf"^\| {heading} \|.*\n\|[-|]+\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    return re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)


def test_every_type_of_event_stands_on_the_page():
    assert first_cells("type") == list(EventType)


def test_every_endpoint_stands_on_the_page():
    assert sorted(first_cells("endpoint")) == sorted(name for name in TABLE if "Webhook" in name)


def test_the_example_has_every_member_of_an_event_in_its_order():
    (text,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    example = json.decode(text)
    assert list(example) == ["type", "timestamp", "data"]
    assert list(example["data"]) == list(Event.__struct_fields__)


def test_there_are_words_for_every_event_in_slack():
    assert HEADLINES.keys() == {*EventType, "webhook.test"}
