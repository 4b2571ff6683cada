"""Tokens, answers, targets and statuses are kept and found by their keys."""

from msgspec.structs import replace

from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.instants import Instant
from mergeyard.domain.repositories import Repo
from mergeyard.domain.statuses import StatusState
from mergeyard.domain.tokens import Scope
from mergeyard.ports.store import ForgetAnswers, KeepAnswer, KeepStatus, KeepTargets, SaveToken, Store
from tests.contract.store.given import (
    HEAD,
    OTHER,
    QUEUE,
    REPO,
    a_queue,
    a_status,
    a_token,
    an_answer,
    digest_of,
    opened,
)
from tests.support.asynchronous import asynchronous


@asynchronous
async def test_a_token_is_found_by_its_digest_with_all_it_may_do(store: Store):
    async with opened(store):
        narrow = a_token("narrow", scopes=frozenset({Scope.ADMIN, Scope.STATUS}), repos=frozenset({REPO}))
        wide = a_token("wide", repos=frozenset({REPO, Repo("git.local", "acme", "lib")}))
        bare = a_token("bare", scopes=frozenset())
        await store.commit(*map(SaveToken, (narrow, wide, bare)))
        for token in (narrow, wide, bare):
            assert await store.token(token.digest) == token
        assert await store.token(b"unknown") is None


@asynchronous
async def test_a_token_is_saved_again_as_it_is_now(store: Store):
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
async def test_tokens_are_listed_oldest_first(store: Store):
    async with opened(store):
        tokens = [a_token("b", created_at=2), a_token("a", created_at=3), a_token("c", created_at=1)]
        await store.commit(*map(SaveToken, tokens))
        assert [token.id for token in await store.tokens()] == ["c", "b", "a"]


@asynchronous
async def test_an_answer_is_found_by_token_and_key(store: Store):
    async with opened(store):
        answers = [an_answer(b"one"), an_answer(b"two", key="k2"), an_answer(b"three", token="t2")]
        await store.commit(*map(KeepAnswer, answers))
        assert await store.answer("t1", "k1") == answers[0]
        assert await store.answer("t1", "k2") == answers[1]
        assert await store.answer("t2", "k1") == answers[2]
        assert await store.answer("t2", "k2") is None
        await store.commit(KeepAnswer(an_answer(b"four", at=7)))
        assert await store.answer("t1", "k1") == an_answer(b"four", at=7)


@asynchronous
async def test_old_answers_are_forgotten(store: Store):
    async with opened(store):
        await store.commit(*(KeepAnswer(an_answer(b"", key=f"{at}", at=at)) for at in (1, 2, 3)))
        await store.commit(ForgetAnswers(Instant(2)))
        assert [await store.answer("t1", f"{at}") is None for at in (1, 2, 3)] == [True, False, False]


@asynchronous
async def test_targets_are_kept_per_head_and_the_last_upload_counts(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        await store.commit(KeepTargets(QUEUE, PrNumber(1), HEAD, b"first", Instant(1)))
        await store.commit(KeepTargets(QUEUE, PrNumber(1), HEAD, b"second", Instant(2)))
        await store.commit(KeepTargets(QUEUE, PrNumber(1), Sha("b" * 40), b"later head", Instant(3)))
        assert await store.targets(QUEUE, PrNumber(1), HEAD) == b"second"
        assert await store.targets(QUEUE, PrNumber(1), Sha("b" * 40)) == b"later head"
        assert await store.targets(QUEUE, PrNumber(2), HEAD) is None
        assert await store.targets(OTHER, PrNumber(1), HEAD) is None


@asynchronous
async def test_a_repository_has_targets_once_any_were_uploaded(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        assert not await store.any_targets(REPO)
        await store.commit(KeepTargets(QUEUE, PrNumber(1), HEAD, b"[]", Instant(1)))
        assert await store.any_targets(REPO)
        assert not await store.any_targets(Repo("git.local", "acme", "lib"))


@asynchronous
async def test_statuses_of_a_commit_are_one_per_context_the_latest_report_in_order(store: Store):
    async with opened(store):
        pending = a_status("unit", state=StatusState.PENDING, at=5, description="running")
        passed, lint = a_status("unit", at=4, description="all green"), a_status("lint", state=StatusState.ERROR)
        await store.commit(*(KeepStatus(REPO, HEAD, status) for status in (pending, passed, lint)))
        assert await store.statuses(REPO, HEAD) == (lint, passed)
        assert await store.statuses(REPO, Sha("b" * 40)) == ()
        assert await store.statuses(Repo("git.local", "acme", "lib"), HEAD) == ()


@asynchronous
async def test_a_body_of_many_mebibytes_is_kept(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        body = bytes(range(256)) * 4 * 1024 * 20
        await store.commit(KeepTargets(QUEUE, PrNumber(1), HEAD, body, Instant(1)))
        assert await store.targets(QUEUE, PrNumber(1), HEAD) == body


@asynchronous
async def test_words_in_any_script_are_kept(store: Store):
    async with opened(store):
        status = a_status("größe 試験 ✓", description="très bien 🎉 'quoted' \"twice\"")
        await store.commit(KeepStatus(REPO, HEAD, status))
        assert await store.statuses(REPO, HEAD) == (status,)
