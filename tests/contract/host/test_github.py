"""What GitHub shows: pull requests, what protects branches, and what changes; and what we may no longer see."""

from itertools import pairwise
from pathlib import Path

import pytest

from mergeyard.domain.instants import SECOND, Instant, later
from mergeyard.domain.repositories import Repo
from mergeyard.ports.host import HostRefused, HostTrouble, Unreadable
from tests.contract.host.github_stage import NAME, GithubStage, github_stage
from tests.contract.host.stage import ONE, TWO
from tests.support.asynchronous import asynchronous
from tests.support.clock import HandClock
from tests.support.forges.faults import ALWAYS, Answers, Stale
from tests.support.forges.github.facts import Guard

# What it is


@asynchronous
async def test_a_pull_request_from_another_repository_is_a_fork(github: GithubStage):
    github.open(1, home="mallory/app")
    async with github.host() as host:
        pull = await host.pull(github.repo, ONE)
        assert pull
        assert pull.fork


@asynchronous
async def test_one_whose_fork_is_gone_and_whose_author_left_is_still_read(github: GithubStage):
    github.open(1)
    async with github.host() as host:
        github.github.faults.plan(Answers(200, body=GHOST), "/pulls/1")
        pull = await host.pull(github.repo, ONE)
        assert pull
        assert (pull.fork, pull.author) == (True, "")


GHOST = b"""{"number": 1, "state": "open", "title": "t", "user": null, "updated_at": "2026-01-01T00:00:00Z",
    "head": {"ref": "topic", "sha": "%b", "repo": null},
    "base": {"ref": "main", "sha": "%b", "repo": {"full_name": "acme/app"}}}""" % (b"1" * 40, b"2" * 40)


@pytest.mark.parametrize("body", [b"", b"[]", b'{"number": 1}', b'{"number": "one"}', b"<html>"])
@asynchronous
async def test_an_answer_that_makes_no_sense_is_trouble(github: GithubStage, body: bytes):
    github.open(1)
    async with github.host() as host:
        github.github.faults.plan(Answers(200, body=body), "/pulls/1")
        with pytest.raises(HostTrouble, match="understand") as trouble:
            await host.pull(github.repo, ONE)
        assert not isinstance(trouble.value, Unreadable)


@asynchronous
async def test_its_page_is_where_people_look(github: GithubStage):
    async with github.host(pages="https://github.com") as host:
        assert host.pull_page(github.repo, ONE) == "https://github.com/acme/app/pull/1"


# Names


BAD_NAMES = ["", ".", "..", "a/b", "a%2Fb", "a b", "a\n", "a?b", "a#b", "ä", "x" * 101]


@asynchronous
async def test_what_is_no_name_never_gets_into_an_address(github: GithubStage):
    async with github.host() as host:
        for repo in (repo for name in BAD_NAMES for repo in (Repo(NAME, name, "app"), Repo(NAME, "acme", name))):
            assert not await host.knows(repo), repo
            with pytest.raises(HostTrouble, match="not a name"):
                await host.pull(repo, ONE)
            with pytest.raises(HostTrouble, match="not a name"):
                await host.remote(repo)
    assert github.github.faults.calls == []


@asynchronous
async def test_names_in_capitals_are_the_same_repository(github: GithubStage):
    github.open(1)
    shouted = Repo(NAME, "ACME", "App")
    async with github.host() as host:
        assert host.same_name(shouted) == github.repo
        assert await host.knows(shouted)
        assert await host.pull(shouted, ONE) == await host.pull(github.repo, ONE)


# What changes


@asynchronous
async def test_branches_with_slashes_are_found_and_absent_ones_left_out(github: GithubStage):
    tip = github.acme.commits("release/1.0", {"b.txt": "1"})
    async with github.host() as host:
        refs = await host.refs(github.repo, {"release/1.0", "nowhere", "main"})
        assert refs == {"refs/heads/release/1.0": tip, "refs/heads/main": github.origin.tip("main")}


@asynchronous
async def test_whatever_changes_about_a_pull_request_changes_its_refs(github: GithubStage):
    github.open(1)
    github.open(2)
    async with github.host() as host:
        before = await host.refs(github.repo, [])
        for change in (
            lambda: github.acme.labels(1, "merge-queue"),
            lambda: github.acme.edits(1, title="Another"),
            lambda: github.acme.edits(1, "converted_to_draft", draft=True),
            lambda: github.acme.closes(1),
        ):
            change()
            after = await host.refs(github.repo, [])
            assert {host.number_of(ref) for ref, _ in after.items() - before.items()} >= {ONE}
            assert after["refs/pull/2/meta"] == before["refs/pull/2/meta"]
            before = after


@asynchronous
async def test_our_own_test_branches_are_no_pull_requests_but_those_of_a_fork_are(github: GithubStage):
    github.acme.commits("mergeyard/pr-1/x", {"b.txt": "1"})
    github.acme.opens("mergeyard/pr-1/x", draft=True)
    github.acme.opens("mergeyard/pr-1/x", home="mallory/app")
    async with github.host() as host:
        assert {host.number_of(ref) for ref in await host.refs(github.repo, [])} == {TWO}


@asynchronous
async def test_what_has_not_changed_is_not_sent_again(github: GithubStage):
    github.open(1)
    async with github.host() as host:
        once = await host.refs(github.repo, ["main"])
        github.github.faults.plan(Answers(304, body=b""), times=2)
        assert await host.refs(github.repo, ["main"]) == once


@asynchronous
async def test_a_stale_answer_is_only_old_and_the_next_one_is_new(github: GithubStage):
    old = github.open(1)
    github.github.faults.plan(Stale(), "/pulls/1", times=2)
    async with github.host() as host:
        assert await host.pull(github.repo, ONE)
        new = github.push(1)
        for head in (old, new):
            pull = await host.pull(github.repo, ONE)
            assert pull
            assert pull.head == head


@asynchronous
async def test_what_changed_a_moment_ago_is_looked_at_once_more(tmp_path: Path):
    """More may have happened in the same second, which would show nowhere."""
    clock = HandClock()
    with github_stage(tmp_path, clock) as github:
        github.open(1)
        async with github.host() as host:
            readings = [await host.refs(github.repo, [])]
            for _ in range(3):
                clock.move_to(later(clock.now(), 2 * SECOND))
                readings.append(await host.refs(github.repo, []))
        assert [one == other for one, other in pairwise(readings)] == [False, True, True]


# What is required


@asynchronous
async def test_required_statuses_come_from_protection_and_from_rulesets_without_our_own(github: GithubStage):
    github.acme.guards["main"] = Guard(contexts=["unit", "mergeyard"])
    github.acme.rulesets["main"] = Guard(contexts=["lint", "unit"])
    async with github.host() as host:
        assert await host.required_statuses(github.repo, "main") == ("lint", "unit")


@asynchronous
async def test_a_branch_that_nothing_protects_or_that_is_not_there_requires_nothing(github: GithubStage):
    async with github.host() as host:
        assert await host.required_statuses(github.repo, "main") == ()
        assert await host.required_statuses(github.repo, "no/where") == ()


@asynchronous
async def test_where_nobody_pays_for_rules_there_are_none(github: GithubStage):
    github.acme.guards["main"] = Guard(contexts=["unit"])
    words = b'{"message": "Upgrade to GitHub Pro or make this repository public to enable this feature."}'
    github.github.faults.plan(Answers(403, body=words), "/rules/")
    async with github.host() as host:
        assert await host.required_statuses(github.repo, "main") == ("unit",)


@asynchronous
async def test_rules_that_cannot_be_read_are_trouble_and_not_nothing(github: GithubStage):
    github.acme.guards["main"] = Guard(contexts=["unit"])
    github.github.faults.plan(Answers(403), "/rules/")
    async with github.host() as host:
        with pytest.raises(HostTrouble):
            await host.required_statuses(github.repo, "main")


# What we may no longer see


@asynchronous
async def test_a_repository_that_we_may_no_longer_see_is_trouble_and_not_empty(github: GithubStage):
    head = github.open(1)
    async with github.host() as host:
        assert await host.pull(github.repo, ONE)
        github.github.faults.plan(Answers(404), times=ALWAYS)
        for reading in (
            lambda: host.pull(github.repo, ONE),
            lambda: host.refs(github.repo, ["main"]),
            lambda: host.thread(github.repo, ONE, Instant(0)),
            lambda: host.statuses(github.repo, head, "main"),
            lambda: host.required_statuses(github.repo, "main"),
            lambda: host.may_write(github.repo, "ada", "main"),
        ):
            with pytest.raises(HostTrouble, match=r"we (do not )?see") as trouble:
                await reading()
            assert not isinstance(trouble.value, HostRefused)
        assert not await host.knows(github.repo)
