"""Draws a comparison as SVG: turnaround divided by Oracle's on a logarithmic scale, next to runs per merge."""

from collections.abc import Iterator, Mapping
from html import escape
from math import ceil, floor, log10

from benchmarks.policy_race.report import MetricRange

ResultsByPolicy = Mapping[str, Mapping[str, MetricRange]]
"""By policy, then by metric."""

ROW_HEIGHT, TOP, BOTTOM = 40, 96, 40
LEFT, TURNAROUND_WIDTH, GAP, RUNS_WIDTH, RIGHT = 170, 520, 70, 260, 40
WIDTH = LEFT + TURNAROUND_WIDTH + GAP + RUNS_WIDTH + RIGHT
TURNAROUND_LABELS = {"p50_over_oracle": "P50", "p95_over_oracle": "P95", "p99_over_oracle": "P99"}
DOT_RADIUS = 5

STYLE = """
    text { font: 13px system-ui, sans-serif; fill: #1f2328 }
    .title { font-size: 17px; font-weight: 600 }
    .dim { fill: #57606a; font-size: 12px }
    .grid { stroke: #d0d7de; stroke-width: 1 }
    .ours { font-weight: 600 }
    .p50 { fill: #1a7f37; stroke: #1a7f37 }
    .p95 { fill: #9a6700; stroke: #9a6700 }
    .p99 { fill: #cf222e; stroke: #cf222e }
    .runs { fill: #0969da; stroke: #0969da }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3 }
      .dim { fill: #9198a1 }
      .grid { stroke: #3d444d }
      .p50 { fill: #3fb950; stroke: #3fb950 }
      .p95 { fill: #d29922; stroke: #d29922 }
      .p99 { fill: #f85149; stroke: #f85149 }
      .runs { fill: #4493f8; stroke: #4493f8 }
    }
"""


class LogScale:
    """Logarithmic scale: maps a value to a coordinate."""

    def __init__(self, values: list[float], start: float, length: float) -> None:
        positive = [value for value in values if value > 0] or [1.0]
        self.least, self.most = floor(log10(min(positive))), ceil(log10(max(positive)))
        self.most = max(self.most, self.least + 1)
        self.start, self.length = start, length

    def to_coordinate(self, value: float) -> float:
        share = (log10(max(value, 10.0**self.least)) - self.least) / (self.most - self.least)
        return round(self.start + self.length * share, 1)

    @property
    def ticks(self) -> list[float]:
        return [10.0**power for power in range(self.least, self.most + 1)]


def draw_svg(results: ResultsByPolicy, workload: str) -> str:
    """`workload`: a description of the simulated workload."""
    height = TOP + ROW_HEIGHT * len(results) + BOTTOM
    elements = "\n  ".join([*_frame(results, workload, height), *_rows(results)])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">\n'
        f"  <title>How our models of merge queues compare</title>\n"
        f"  <desc>Turnaround divided by Oracle's, and runs per merge, of {len(results)} policies.</desc>\n"
        f"  <style>{STYLE}  </style>\n  {elements}\n</svg>\n"
    )


def _scales(results: ResultsByPolicy) -> tuple[LogScale, LogScale]:
    turnarounds = [
        bound
        for metrics in results.values()
        for name in TURNAROUND_LABELS
        for bound in (metrics[name].minimum, metrics[name].maximum)
    ]
    runs = [
        bound
        for metrics in results.values()
        for bound in (metrics["runs_per_merge"].minimum, metrics["runs_per_merge"].maximum)
    ]
    return LogScale(turnarounds, LEFT, TURNAROUND_WIDTH), LogScale(runs, LEFT + TURNAROUND_WIDTH + GAP, RUNS_WIDTH)


def _frame(results: ResultsByPolicy, workload: str, height: int) -> Iterator[str]:
    yield _text(16, 28, "How our models of merge queues compare", "title")
    yield _text(16, 50, workload, "dim")
    yield _text(LEFT, 78, "Turnaround ÷ Oracle", "dim")
    for index, (metric, label) in enumerate(TURNAROUND_LABELS.items()):
        x = LEFT + 150 + 60 * index
        yield f'<circle class="{_css_class(metric)}" cx="{x}" cy="74" r="{DOT_RADIUS}"/>'
        yield _text(x + 10, 78, label, "dim")
    yield _text(LEFT + TURNAROUND_WIDTH + GAP, 78, "Runs per merge", "dim")
    for scale in _scales(results):
        for mark in scale.ticks:
            x = scale.to_coordinate(mark)
            yield f'<line class="grid" x1="{x}" y1="{TOP - 8}" x2="{x}" y2="{height - BOTTOM}"/>'
            yield _text(x, height - BOTTOM + 18, f"{mark:g}", "dim", "middle")


def _rows(results: ResultsByPolicy) -> Iterator[str]:
    turnarounds, runs = _scales(results)
    for index, (policy, metrics) in enumerate(results.items()):
        y = TOP + ROW_HEIGHT * index + ROW_HEIGHT // 2
        yield _text(16, y + 4, policy, "ours" if policy.startswith("mergeyard") else "")
        for number, metric in enumerate(TURNAROUND_LABELS):
            yield from _draw_range(turnarounds, metrics[metric], y + 8 * (number - 1), _css_class(metric))
        yield from _draw_range(runs, metrics["runs_per_merge"], y, "runs")


def _draw_range(scale: LogScale, values: MetricRange, y: float, css_class: str) -> Iterator[str]:
    """The mean as a dot, minimum to maximum as a line."""
    least, most = scale.to_coordinate(values.minimum), scale.to_coordinate(values.maximum)
    yield f'<line class="{css_class}" x1="{least}" y1="{y}" x2="{most}" y2="{y}" stroke-width="2"/>'
    yield f'<circle class="{css_class}" cx="{scale.to_coordinate(values.mean)}" cy="{y}" r="{DOT_RADIUS}"/>'


def _css_class(metric: str) -> str:
    return TURNAROUND_LABELS[metric].lower()


def _text(x: float, y: float, text: str, css_class: str, anchor: str = "start") -> str:
    return f'<text x="{x}" y="{y}" class="{css_class}" text-anchor="{anchor}">{escape(text)}</text>'
