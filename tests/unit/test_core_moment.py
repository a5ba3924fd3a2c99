"""Times as they are shown: UTC, milliseconds, never later than what happened."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from affidavit.core.moment import AT_US_MAX, render_time
from affidavit.core.names import check_timestamp

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("at_us", "expected"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (999, "1970-01-01T00:00:00.000Z"),
        (1_000, "1970-01-01T00:00:00.001Z"),
        (999_999, "1970-01-01T00:00:00.999Z"),
        (1_000_000, "1970-01-01T00:00:01.000Z"),
        (951_782_400_000_000, "2000-02-29T00:00:00.000Z"),
        (1_776_384_000_000_001, "2026-04-17T00:00:00.000Z"),
        (1_776_384_000_123_456, "2026-04-17T00:00:00.123Z"),
        (AT_US_MAX, "2255-06-05T23:47:34.740Z"),
    ],
)
def test_a_time_is_cut_to_milliseconds(at_us, expected):
    assert render_time(at_us) == expected


@given(st.integers(0, AT_US_MAX))
@settings(deadline=None, max_examples=200)
def test_a_rendered_time_is_the_moment_itself_cut_and_never_later(at_us):
    shown = render_time(at_us)
    check_timestamp(shown, "timestamp")
    cut = EPOCH + timedelta(microseconds=at_us - at_us % 1_000)
    assert datetime.fromisoformat(shown) == cut


@given(st.tuples(st.integers(0, AT_US_MAX), st.integers(0, AT_US_MAX)))
@settings(deadline=None, max_examples=200)
def test_rendered_times_sort_as_the_moments_do(pair):
    earlier, later = sorted(pair)
    assert render_time(earlier) <= render_time(later)
