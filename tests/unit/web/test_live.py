"""The number of live streams is limited, per token and in total. A page notices a silent stream, but not too early."""

import re

from mergeyard.domain.access import Scope, Token
from mergeyard.domain.timestamps import Instant
from mergeyard.web.live import ALIVE_INTERVAL_MS, MAX_STREAMS, MAX_STREAMS_PER_TOKEN, StreamLimit
from mergeyard.web.rendering import STATIC_FILES


def a_token(name: str) -> Token:
    return Token(id=name, name=name, digest=b"", scopes=frozenset({Scope.READ}), created_at=Instant(0))


def limit_with(*tokens: Token) -> StreamLimit:
    limit = StreamLimit()
    for token in tokens:
        limit.add(token)
    return limit


def test_each_token_has_its_own_limit_of_streams():
    ada, bob = a_token("ada"), a_token("bob")
    limit = limit_with(*[ada] * MAX_STREAMS_PER_TOKEN)
    assert (limit.has_room_for(ada), limit.has_room_for(bob)) == (False, True)
    limit.remove(ada)
    assert limit.has_room_for(ada)


def test_the_total_limit_applies_to_new_tokens_too():
    tokens = [a_token(f"token {number}") for number in range(MAX_STREAMS)]
    limit = limit_with(*tokens)
    assert not limit.has_room_for(a_token("ada"))
    limit.remove(tokens[0])
    assert limit.has_room_for(a_token("ada"))


def test_page_takes_a_stream_for_silent_only_when_it_missed_two_events():
    found = re.search(r"MAX_SILENCE_MS = (\d+);", STATIC_FILES["page.js"].decode())
    assert found
    assert 2 * ALIVE_INTERVAL_MS < int(found[1]) <= 4000
