"""Which series there are, and which of them a query asks for."""

import re

from mergeyard.service.measuring import REGISTRY
from tests.deploy.files import ROOT

PAGE = (ROOT / "docs" / "metrics.md").read_text()
EXPLAINED = dict(re.findall(r"^\| `(\w+)` \| (\w+) \|", PAGE, re.MULTILINE))
PARTS_OF_HISTOGRAMS = ("_bucket", "_count", "_sum")
OF_THE_CLIENT = {sample.name for family in REGISTRY.collect() for sample in family.samples if "process" in sample.name}


def known() -> set[str]:
    histograms = {name for name, kind in EXPLAINED.items() if kind == "histogram"}
    parts = {name + part for name in histograms for part in PARTS_OF_HISTOGRAMS}
    return EXPLAINED.keys() - histograms | parts | OF_THE_CLIENT


def asked_for(query: str) -> set[str]:
    """Names of labels stand in braces or parentheses; those of ours begin like no series."""
    return set(re.findall(r"\b(?:mq|mergeyard|process)_\w+", query))


def explained_by(series: set[str]) -> set[str]:
    """The rows of the page that these series belong to."""
    return {name for name in EXPLAINED if name in series or any(name + part in series for part in PARTS_OF_HISTOGRAMS)}
