"""Times on the wire are ISO 8601 in UTC, and only such with an offset are read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mergeyard.api import times
from mergeyard.domain.instants import Instant

MOMENT = Instant(1_794_651_362_000)


def test_an_instant_is_written_with_milliseconds_and_z():
    assert times.written(MOMENT) == "2026-11-14T10:16:02.000Z"
    assert times.written(Instant(MOMENT + 7)) == "2026-11-14T10:16:02.007Z"


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-14T10:16:02Z",
        "2026-11-14T10:16:02.000Z",
        "2026-11-14T10:16:02.000000001z",
        "2026-11-14T12:16:02+02:00",
        "2026-11-14 05:16:02-0500",
    ],
)
def test_any_offset_is_read(text: str):
    assert times.read(text) == MOMENT


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2026-11-14",
        "2026-11-14T10:16:02",
        "2026-13-14T10:16:02Z",
        "1794651362000",
        "2026-W46-6T10:00:00Z",
        "٢٠٢٦-11-14T10:16:02Z",
    ],
)
def test_what_names_no_moment_is_not_read(text: str):
    assert times.read(text) is None


@given(st.integers(0, 4_102_444_800_000).map(Instant))
def test_what_is_written_is_read_again(instant: Instant):
    assert times.read(times.written(instant)) == instant
