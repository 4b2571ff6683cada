"""Tokens, responses, impacted targets and statuses are stored and found by their keys."""

import asyncio

import pytest
from msgspec.structs import replace

from mergeyard.domain.access import Scope
from mergeyard.domain.ids import PullRequestNumber, QueueKey, Repo, RunId, Sha
from mergeyard.domain.pull_requests import StatusState
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.store import DuplicateRequest, Store, StoredQueue
from mergeyard.ports.writes import (
    DeleteExpiredResponses,
    QueuePart,
    RecordTokenUse,
    SaveImpactedTargets,
    SaveResponse,
    SaveStatus,
    SaveToken,
)
from tests.contract.store.builders import (
    HEAD,
    OTHER,
    QUEUE,
    REPO,
    a_decision,
    a_queue,
    a_response,
    a_status,
    a_submission,
    a_token,
    digest_of,
    opened,
)
from tests.support.asynchronous import asynchronous


@asynchronous
async def test_a_token_is_found_by_its_digest_or_id_with_all_its_fields(store: Store):
    async with opened(store):
        narrow = a_token("narrow", scopes=frozenset({Scope.ADMIN, Scope.STATUS}), repos=frozenset({REPO}))
        wide = a_token("wide", repos=frozenset({REPO, Repo("git.local", "acme", "lib")}))
        bare = a_token("bare", scopes=frozenset())
        await store.commit(*map(SaveToken, (narrow, wide, bare)))
        for token in (narrow, wide, bare):
            assert await store.token(token.digest) == token
            assert await store.token_by_id(token.id) == token
        assert await store.token(b"unknown") is None
        assert await store.token_by_id("unknown") is None


@asynchronous
async def test_saving_a_token_again_replaces_it(store: Store):
    async with opened(store):
        await store.commit(SaveToken(a_token("ci")))
        await store.commit(SaveToken(a_token("ci", revoked_at=5)))
        revoked = await store.token(digest_of("ci"))
        assert revoked is not None
        assert revoked.revoked_at == 5
        await store.commit(SaveToken(replace(revoked, digest=b"another")))
        assert await store.token(digest_of("ci")) is None
        assert await store.tokens() == (replace(revoked, digest=b"another"),)


@asynchronous
async def test_the_latest_recorded_use_of_a_token_is_kept_also_when_it_is_revoked(store: Store):
    async with opened(store):
        await store.commit(SaveToken(a_token("ci")))
        for at, address in ((7, "192.0.2.7"), (9, "2001:db8::1"), (8, "192.0.2.8")):
            await store.commit(RecordTokenUse("ci", Instant(at), address))
        await store.commit(RecordTokenUse("unknown", Instant(9), "192.0.2.7"))
        await store.commit(SaveToken(a_token("ci", revoked_at=10)))
        (token,) = await store.tokens()
        assert (token.revoked_at, token.last_used_at, token.last_used_from) == (10, 9, "2001:db8::1")


@asynchronous
async def test_tokens_are_listed_oldest_first(store: Store):
    async with opened(store):
        tokens = [a_token("b", created_at=2), a_token("a", created_at=3), a_token("c", created_at=1)]
        await store.commit(*map(SaveToken, tokens))
        assert [token.id for token in await store.tokens()] == ["c", "b", "a"]


@asynchronous
async def test_a_response_is_found_by_token_and_key(store: Store):
    async with opened(store):
        answers = [a_response(b"one"), a_response(b"two", key="k2"), a_response(b"three", token="t2")]
        await store.commit(*(SaveResponse(answer, Instant(0)) for answer in answers))
        assert await store.response("t1", "k1") == answers[0]
        assert await store.response("t1", "k2") == answers[1]
        assert await store.response("t2", "k1") == answers[2]
        assert await store.response("t2", "k2") is None


@asynchronous
async def test_a_second_response_to_a_request_rolls_back_its_whole_commit(store: Store):
    async with opened(store):
        await store.commit(SaveResponse(a_response(b"first", at=5), Instant(1)))
        with pytest.raises(DuplicateRequest):
            await store.commit(SaveToken(a_token("ci")), SaveResponse(a_response(b"second", at=7), Instant(5)))
        assert await store.response("t1", "k1") == a_response(b"first", at=5)
        assert await store.tokens() == ()


@asynchronous
async def test_an_expired_response_is_replaced(store: Store):
    async with opened(store):
        await store.commit(SaveResponse(a_response(b"first", at=5), Instant(1)))
        await store.commit(SaveResponse(a_response(b"second", at=7), Instant(6)))
        assert await store.response("t1", "k1") == a_response(b"second", at=7)


@asynchronous
async def test_one_of_many_concurrent_responses_is_stored(store: Store):
    async with opened(store):
        racing = [store.commit(SaveResponse(a_response(b"%d" % racer), Instant(0))) for racer in range(10)]
        outcomes = await asyncio.gather(*racing, return_exceptions=True)
        assert sorted(type(outcome).__name__ for outcome in outcomes) == [*["DuplicateRequest"] * 9, "NoneType"]
        assert await store.response("t1", "k1") == a_response(b"%d" % outcomes.index(None))


@asynchronous
async def test_expired_responses_are_deleted(store: Store):
    async with opened(store):
        await store.commit(*(SaveResponse(a_response(b"", key=f"{at}", at=at), Instant(0)) for at in (1, 2, 3)))
        await store.commit(DeleteExpiredResponses(Instant(2)))
        assert [await store.response("t1", f"{at}") is None for at in (1, 2, 3)] == [True, False, False]


@asynchronous
async def test_impacted_targets_are_stored_per_head_and_the_last_upload_counts(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        await store.commit(SaveImpactedTargets(QUEUE, PullRequestNumber(1), HEAD, b"first", Instant(1)))
        await store.commit(SaveImpactedTargets(QUEUE, PullRequestNumber(1), HEAD, b"second", Instant(2)))
        await store.commit(SaveImpactedTargets(QUEUE, PullRequestNumber(1), Sha("b" * 40), b"later head", Instant(3)))
        assert await store.impacted_targets(QUEUE, PullRequestNumber(1), HEAD) == b"second"
        assert await store.impacted_targets(QUEUE, PullRequestNumber(1), Sha("b" * 40)) == b"later head"
        assert await store.impacted_targets(QUEUE, PullRequestNumber(2), HEAD) is None
        assert await store.impacted_targets(OTHER, PullRequestNumber(1), HEAD) is None
        assert await store.has_impacted_targets(QUEUE, PullRequestNumber(1), HEAD)
        assert not await store.has_impacted_targets(QUEUE, PullRequestNumber(2), HEAD)
        assert not await store.has_impacted_targets(OTHER, PullRequestNumber(1), HEAD)


@asynchronous
async def test_a_repository_has_impacted_targets_after_any_upload(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        assert not await store.has_any_impacted_targets(REPO)
        await store.commit(SaveImpactedTargets(QUEUE, PullRequestNumber(1), HEAD, b"[]", Instant(1)))
        assert await store.has_any_impacted_targets(REPO)
        assert not await store.has_any_impacted_targets(Repo("git.local", "acme", "lib"))


@asynchronous
async def test_statuses_of_a_commit_are_one_per_context_the_latest_report_in_order(store: Store):
    async with opened(store):
        pending = a_status("unit", state=StatusState.PENDING, at=5, description="running")
        passed, lint = a_status("unit", at=4, description="all passed"), a_status("lint", state=StatusState.ERROR)
        await store.commit(*(SaveStatus(REPO, HEAD, status) for status in (pending, passed, lint)))
        assert await store.statuses(REPO, HEAD) == (lint, passed)
        assert await store.statuses(REPO, Sha("b" * 40)) == ()
        assert await store.statuses(Repo("git.local", "acme", "lib"), HEAD) == ()


@asynchronous
async def test_a_body_of_many_mebibytes_is_kept(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        body = bytes(range(256)) * 4 * 1024 * 20
        await store.commit(SaveImpactedTargets(QUEUE, PullRequestNumber(1), HEAD, body, Instant(1)))
        assert await store.impacted_targets(QUEUE, PullRequestNumber(1), HEAD) == body


@asynchronous
async def test_text_with_any_character_is_read_back_exactly(store: Store):
    async with opened(store):
        strange = "\0\1\2 \0\0\1\1\1\2\1\0 \x7f\u2028\uffff"
        statuses = tuple(
            replace(a_status(f"{count}{strange}", description=strange, suite=strange), url=strange)
            for count in range(3)
        )
        key, token = QueueKey(Repo(*[f"{count}{strange}" for count in range(3)]), strange), a_token(strange)
        submission = a_submission(1, branch=strange, body=strange.encode())
        await store.commit(
            a_queue(key=key), a_decision(1, QueuePart(strange, strange, b"fact"), submission), SaveToken(token)
        )
        await store.commit(*(SaveStatus(key.repo, HEAD, status) for status in statuses))
        await store.commit(SaveResponse(a_response(b"answer", key=strange), Instant(0)))
        assert await store.queues() == (StoredQueue(QUEUE, key, 1),)
        assert (await store.load(QUEUE)).parts == (QueuePart(strange, strange, b"fact"),)
        assert await store.last_submission_of_branch(QUEUE, strange) == strange.encode()
        assert await store.last_submission_of_branch(QUEUE, strange.replace("\0", "\1\1")) is None
        assert await store.statuses(key.repo, HEAD) == statuses
        assert await store.tokens() == (token,)
        assert await store.response("t1", strange) == a_response(b"answer", key=strange)
        assert await store.run(QUEUE, RunId(strange)) is None


@asynchronous
async def test_statuses_are_sorted_by_the_code_points_of_their_contexts(store: Store):
    async with opened(store):
        contexts = ["", "\0", "\0b", "\1", "\2", "A", "A\0", "A\0B", "A\1", "AB", "B", "a", "z", "ä", "試"]
        await store.commit(*(SaveStatus(REPO, HEAD, a_status(context)) for context in reversed(contexts)))
        assert [status.context for status in await store.statuses(REPO, HEAD)] == contexts


@asynchronous
async def test_text_in_any_script_is_stored(store: Store):
    async with opened(store):
        status = a_status("größe 試験 ✓", description="très bien 🎉 'quoted' \"twice\"")
        await store.commit(SaveStatus(REPO, HEAD, status))
        assert await store.statuses(REPO, HEAD) == (status,)
