"""The plot: one row for each policy, accessible, with light and dark colors."""

from xml.etree import ElementTree

import pytest

from benchmarks.policy_race.plot import LogScale, draw_svg
from benchmarks.policy_race.report import MetricRange, RaceMetrics

pytestmark = pytest.mark.long

SVG = "{http://www.w3.org/2000/svg}"
RESULTS = {
    policy: dict.fromkeys(RaceMetrics.__struct_fields__, MetricRange(mean, mean / 2, mean * 2))
    for policy, mean in (("oracle", 1.0), ("a<b & c", 40.0))
}


def parse_plot() -> ElementTree.Element:
    return ElementTree.fromstring(draw_svg(RESULTS, "a workload"))


def test_every_policy_has_its_name_and_four_marks():
    texts = [text.text for text in parse_plot().iter(f"{SVG}text")]
    assert {"oracle", "a<b & c", "a workload", "P50", "P95", "P99"} <= set(texts)
    legend = 3
    assert len(list(parse_plot().iter(f"{SVG}circle"))) == legend + 4 * len(RESULTS)


def test_the_plot_has_a_description_and_a_dark_mode():
    assert parse_plot().get("role") == "img"
    assert [parse_plot().findtext(f"{SVG}{name}") for name in ("title", "desc")] == [
        "How our models of merge queues compare",
        "Turnaround divided by Oracle's, and runs per merge, of 2 policies.",
    ]
    assert "prefers-color-scheme: dark" in draw_svg(RESULTS, "")


def test_the_scale_is_logarithmic():
    scale = LogScale([1, 100], start=50, length=200)
    assert [scale.to_coordinate(value) for value in (1, 10, 100)] == [50, 150, 250]
    assert scale.ticks == [1, 10, 100]


def test_a_scale_of_zeros_is_valid():
    assert LogScale([0, 0], start=0, length=10).to_coordinate(0) == 0
