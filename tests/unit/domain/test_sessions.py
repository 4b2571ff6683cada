"""A session lasts until its end, and not a moment longer."""

from mergeyard.domain.instants import Instant
from mergeyard.domain.sessions import NOTHING_GRANTED, Grants, Session
from mergeyard.domain.tokens import Scope


def test_a_session_is_over_at_its_end():
    session = Session(digest=b"", token=None, created_at=Instant(0), expires_at=Instant(10))
    assert session.valid(Instant(9))
    assert not session.valid(Instant(10))


def test_whoever_is_vouched_for_may_do_what_their_groups_may_and_see_it():
    grants = Grants(to_groups={"ops": frozenset({Scope.ADMIN})}, to_everybody=frozenset({Scope.SUBMIT}))
    assert grants.of(frozenset({"ops", "unknown"})) == {Scope.ADMIN, Scope.SUBMIT, Scope.READ}
    assert grants.of(frozenset()) == {Scope.SUBMIT, Scope.READ}


def test_nothing_is_granted_unless_it_is_said():
    assert NOTHING_GRANTED.of(frozenset({"ops"})) == frozenset()
