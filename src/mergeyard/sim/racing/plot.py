"""Draws a comparison as a picture: turnaround over Oracle on a logarithmic scale, and runs per merge beside it."""

from collections.abc import Iterator, Mapping
from html import escape
from math import ceil, floor, log10

from mergeyard.sim.racing.ranges import Range

Results = Mapping[str, Mapping[str, Range]]
"""By the policy, then by the figure."""

ROW, TOP, BOTTOM = 40, 96, 40
LEFT, WIDE, GAP, NARROW, RIGHT = 170, 520, 70, 260, 40
WIDTH = LEFT + WIDE + GAP + NARROW + RIGHT
WAITS = {"p50_over_oracle": "P50", "p95_over_oracle": "P95", "p99_over_oracle": "P99"}
DOT = 5

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


class Scale:
    """From a number to a place between two others, by powers of ten."""

    def __init__(self, values: list[float], start: float, length: float) -> None:
        positive = [value for value in values if value > 0] or [1.0]
        self.least, self.most = floor(log10(min(positive))), ceil(log10(max(positive)))
        self.most = max(self.most, self.least + 1)
        self.start, self.length = start, length

    def place(self, value: float) -> float:
        share = (log10(max(value, 10.0**self.least)) - self.least) / (self.most - self.least)
        return round(self.start + self.length * share, 1)

    @property
    def marks(self) -> list[float]:
        return [10.0**power for power in range(self.least, self.most + 1)]


def draw_svg(results: Results, workload: str) -> str:
    """`workload` says in words what was raced on."""
    height = TOP + ROW * len(results) + BOTTOM
    drawn = "\n  ".join([*_frame(results, workload, height), *_rows(results)])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">\n'
        f"  <title>How policies compare</title>\n"
        f"  <desc>Turnaround divided by Oracle's, and runs per merge, of {len(results)} policies.</desc>\n"
        f"  <style>{STYLE}  </style>\n  {drawn}\n</svg>\n"
    )


def _scales(results: Results) -> tuple[Scale, Scale]:
    waits = [edge for each in results.values() for name in WAITS for edge in (each[name].least, each[name].most)]
    runs = [edge for each in results.values() for edge in (each["runs_per_merge"].least, each["runs_per_merge"].most)]
    return Scale(waits, LEFT, WIDE), Scale(runs, LEFT + WIDE + GAP, NARROW)


def _frame(results: Results, workload: str, height: int) -> Iterator[str]:
    yield _text(16, 28, "How policies compare", "title")
    yield _text(16, 50, workload, "dim")
    yield _text(LEFT, 78, "Turnaround ÷ Oracle", "dim")
    for place, (figure, label) in enumerate(WAITS.items()):
        x = LEFT + 150 + 60 * place
        yield f'<circle class="{_tone(figure)}" cx="{x}" cy="74" r="{DOT}"/>'
        yield _text(x + 10, 78, label, "dim")
    yield _text(LEFT + WIDE + GAP, 78, "Runs per merge", "dim")
    for scale in _scales(results):
        for mark in scale.marks:
            x = scale.place(mark)
            yield f'<line class="grid" x1="{x}" y1="{TOP - 8}" x2="{x}" y2="{height - BOTTOM}"/>'
            yield _text(x, height - BOTTOM + 18, f"{mark:g}", "dim", "middle")


def _rows(results: Results) -> Iterator[str]:
    waits, runs = _scales(results)
    for place, (policy, figures) in enumerate(results.items()):
        y = TOP + ROW * place + ROW // 2
        yield _text(16, y + 4, policy, "ours" if policy.startswith("mergeyard") else "")
        for number, figure in enumerate(WAITS):
            yield from _mark(waits, figures[figure], y + 8 * (number - 1), _tone(figure))
        yield from _mark(runs, figures["runs_per_merge"], y, "runs")


def _mark(scale: Scale, found: Range, y: float, tone: str) -> Iterator[str]:
    """The mean as a dot, and from the least to the most as a line."""
    least, most = scale.place(found.least), scale.place(found.most)
    yield f'<line class="{tone}" x1="{least}" y1="{y}" x2="{most}" y2="{y}" stroke-width="2"/>'
    yield f'<circle class="{tone}" cx="{scale.place(found.mean)}" cy="{y}" r="{DOT}"/>'


def _tone(figure: str) -> str:
    return WAITS[figure].lower()


def _text(x: float, y: float, words: str, tone: str, anchor: str = "start") -> str:
    return f'<text x="{x}" y="{y}" class="{tone}" text-anchor="{anchor}">{escape(words)}</text>'
