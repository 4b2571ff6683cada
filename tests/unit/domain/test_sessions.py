"""A session lasts until its end, and not a moment longer."""

from mergeyard.domain.instants import Instant
from mergeyard.domain.sessions import Session


def test_a_session_is_over_at_its_end():
    session = Session(digest=b"", token=None, created_at=Instant(0), expires_at=Instant(10))
    assert session.valid(Instant(9))
    assert not session.valid(Instant(10))
