"""Times in the API are ISO 8601 in UTC; times without an offset are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mergeyard.api import fields
from mergeyard.domain.timestamps import Instant

INSTANT = Instant(1_794_651_362_000)


def test_an_instant_is_written_with_milliseconds_and_z():
    assert fields.format_time(INSTANT) == "2026-11-14T10:16:02.000Z"
    assert fields.format_time(Instant(INSTANT + 7)) == "2026-11-14T10:16:02.007Z"


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
    assert fields.parse_time(text) == INSTANT


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
def test_text_that_is_not_an_instant_is_refused(text: str):
    assert fields.parse_time(text) is None


@given(st.integers(0, 4_102_444_800_000).map(Instant))
def test_a_formatted_time_is_parsed_to_the_same_instant(instant: Instant):
    assert fields.parse_time(fields.format_time(instant)) == instant
