"""Every metric is explained, and none that does not exist."""

import re
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from mergeyard.api import metrics_text
from mergeyard.domain.repositories import QueueKey, Repo
from mergeyard.service.figures import QueueFigures
from mergeyard.service.measuring import REGISTRY

PAGE = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text()
EXPLAINED = re.findall(r"^\| `(\w+)` \| (\w+) \|", PAGE, re.MULTILINE)


def test_every_metric_of_a_queue_is_explained():
    text = metrics_text.written([QueueFigures(QueueKey(Repo("host", "owner", "name"), "main"))]).decode()
    shown = {(family.name, family.type) for family in text_string_to_metric_families(text)}
    assert shown == {(name, kind) for name, kind in EXPLAINED if name.startswith("mq_")}


def test_every_metric_of_the_process_is_explained():
    families = [family for family in REGISTRY.collect() if family.name.startswith("mergeyard_")]
    shown = {(family.name + ("_total" if family.type == "counter" else ""), family.type) for family in families}
    assert shown == {(name, kind) for name, kind in EXPLAINED if name.startswith("mergeyard_")}
