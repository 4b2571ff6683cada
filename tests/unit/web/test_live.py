"""Whoever follows a queue has a seat, and there are only so many."""

from mergeyard.domain.instants import Instant
from mergeyard.domain.tokens import Scope, Token
from mergeyard.web.live import MOST, MOST_FOR_A_TOKEN, Seats


def a_token(name: str) -> Token:
    return Token(id=name, name=name, digest=b"", scopes=frozenset({Scope.READ}), created_at=Instant(0))


def taken(*tokens: Token) -> Seats:
    seats = Seats()
    for token in tokens:
        seats.take(token)
    return seats


def test_a_token_has_so_many_seats_and_others_have_theirs():
    ada, bob = a_token("ada"), a_token("bob")
    seats = taken(*[ada] * MOST_FOR_A_TOKEN)
    assert (seats.free_for(ada), seats.free_for(bob)) == (False, True)
    seats.leave(ada)
    assert seats.free_for(ada)


def test_when_all_seats_are_taken_there_is_none_even_for_a_newcomer():
    crowd = [a_token(f"visitor {number}") for number in range(MOST)]
    seats = taken(*crowd)
    assert not seats.free_for(a_token("ada"))
    seats.leave(crowd[0])
    assert seats.free_for(a_token("ada"))
