"""Shows the measurements of a soak: a line per minute, and a table at the end."""

from collections.abc import Sequence
from statistics import median, quantiles

from rich.table import Table

from tests.soak.figures import Interval, SoakResult
from tests.soak.samples import MIB


def format_interval(stretch: Interval) -> str:
    last, disk = stretch.last, stretch.disk
    return (
        f"{stretch.seconds / 60:5.1f} min  {stretch.ended:7,} ended  {stretch.per_minute:5.0f}/min"
        f"  {stretch.under_way:3} under way  {last.memory / MIB:6.1f} MiB  {last.descriptors:3} descriptors"
        f"  {last.threads:3} threads  {last.delay:6.1f} ms delay"
        f"  database {disk.database / MIB:.1f}  mirrors {disk.mirrors / MIB:.1f} MiB in {disk.mirror_files:,} files"
    )


def result_table(figures: SoakResult) -> Table:
    drawn = Table(title="Soak", show_header=False)
    drawn.add_column()
    drawn.add_column(justify="right")
    for name, figure in (*_traffic(figures), *_memory(figures), *_growth(figures), *_response_times(figures)):
        drawn.add_row(name, figure)
    return drawn


def _traffic(figures: SoakResult) -> list[tuple[str, str]]:
    return [
        ("pull requests ended", f"{sum(figures.states.values()):,}"),
        *((f"  {state}", f"{count:,}") for state, count in figures.states.most_common()),
        ("landings checked", f"{figures.landings:,}"),
        ("conclusions delivered by webhook", f"{figures.webhooks:,}"),
        ("seconds until no test branch was left", f"{figures.seconds_until_clean:.1f}"),
        ("seconds until the last event was delivered", f"{figures.seconds_until_delivered:.1f}"),
        ("per minute, after the warm-up", f"{figures.per_minute:,.0f}"),
        ("under way", f"{figures.intervals[-1].under_way}"),
    ]


def _memory(figures: SoakResult) -> list[tuple[str, str]]:
    by_pulls, by_hour = figures.memory, figures.memory_by_hour
    before, after = figures.idle_before, figures.idle_after
    return [
        ("memory at idle, before and after", f"{before.memory / MIB:.1f} → {after.memory / MIB:.1f} MiB"),
        ("memory is checked", "yes" if figures.has_full_caches else "no: the database caches are still filling"),
        ("memory per 1,000 ended", f"{by_pulls.value / MIB:+.2f} ± {by_pulls.error / MIB:.2f} MiB"),
        ("memory per hour", f"{by_hour.value / MIB:+.1f} ± {by_hour.error / MIB:.1f} MiB"),
        ("maximum memory", f"{max(sample.memory for sample in figures.samples) / MIB:.1f} MiB"),
        ("descriptors at idle", f"{before.descriptors} → {after.descriptors}"),
        ("threads at idle", f"{before.threads} → {after.threads}"),
        ("maximum of descriptors, child processes", _maximum(figures)),
    ]


def _maximum(figures: SoakResult) -> str:
    return ", ".join(str(max(getattr(each, name) for each in figures.samples)) for name in ("descriptors", "children"))


def _growth(figures: SoakResult) -> list[tuple[str, str]]:
    return [
        ("database per 1,000 ended", f"{figures.growth(lambda disk: disk.database) / MIB:+.2f} MiB"),
        ("mirrors per 1,000 ended", f"{figures.growth(lambda disk: disk.mirrors) / MIB:+.2f} MiB"),
        ("files in mirrors per 1,000 ended", f"{figures.growth(lambda disk: disk.mirror_files):+,.0f}"),
        ("log per 1,000 ended", f"{figures.growth(lambda disk: disk.log) / MIB:+.2f} MiB"),
    ]


def _response_times(figures: SoakResult) -> list[tuple[str, str]]:
    delays = [sample.delay for sample in figures.samples]
    asked = [("event loop delay", delays), *sorted(figures.milliseconds.items())]
    return [(f"{name}, median and 99th percentile", _times(times)) for name, times in asked if len(times) > 1]


def _times(milliseconds: Sequence[float]) -> str:
    return f"{median(milliseconds):.1f}, {quantiles(milliseconds, n=100)[98]:.1f} ms"
