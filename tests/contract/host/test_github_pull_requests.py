"""What is read from GitHub: pull requests, branch protection, changes, and repositories that are no longer visible."""

from itertools import pairwise
from pathlib import Path

import pytest

from mergeyard.adapters.forges.github.host import GithubHost
from mergeyard.domain.ids import PullRequestNumber, Repo
from mergeyard.domain.states import Mergeability
from mergeyard.domain.timestamps import MINUTE, SECOND, Instant, later
from mergeyard.ports.forge import HostAccessLost, HostRefused, HostUnavailable, UnexpectedHostResponse
from tests.contract.host.environment import ONE, TWO
from tests.contract.host.github_environment import NAME, GithubEnvironment, github_environment
from tests.support.asynchronous import asynchronous
from tests.support.clock import ManualClock
from tests.support.forges.faults import ALWAYS, RepeatsFirstResponse, RespondsWith
from tests.support.forges.github.world import BranchProtection

# Pull requests


@asynchronous
async def test_a_pull_request_from_another_repository_is_a_fork(github: GithubEnvironment):
    github.open(1, home="mallory/app")
    async with github.host() as host:
        pull_request = await host.read_pull_request(github.repo, ONE)
        assert pull_request
        assert pull_request.fork


@asynchronous
async def test_a_pull_request_without_its_fork_and_author_is_still_read(github: GithubEnvironment):
    github.open(1)
    async with github.host() as host:
        github.github.faults.plan(RespondsWith(200, body=GHOST), "/pulls/1")
        pull_request = await host.read_pull_request(github.repo, ONE)
        assert pull_request
        assert (pull_request.fork, pull_request.author) == (True, "")


GHOST = b"""{"number": 1, "state": "open", "title": "t", "user": null, "updated_at": "2026-01-01T00:00:00Z",
    "head": {"ref": "topic", "sha": "%b", "repo": null},
    "base": {"ref": "main", "sha": "%b", "repo": {"full_name": "acme/app"}}}""" % (b"1" * 40, b"2" * 40)


@pytest.mark.parametrize("body", [b"", b"[]", b'{"number": 1}', b'{"number": "one"}', b"<html>"])
@asynchronous
async def test_an_unexpected_response_is_an_error(github: GithubEnvironment, body: bytes):
    github.open(1)
    async with github.host() as host:
        github.github.faults.plan(RespondsWith(200, body=body), "/pulls/1")
        with pytest.raises(HostUnavailable, match="unexpected response") as error:
            await host.read_pull_request(github.repo, ONE)
        assert not isinstance(error.value, UnexpectedHostResponse)


@asynchronous
async def test_a_known_pull_request_is_gone_only_when_it_is_missing_twice(tmp_path: Path):
    """GitHub can answer 404 for a moment about a pull request that exists."""
    clock = ManualClock()
    with github_environment(tmp_path, clock) as github:
        github.open(1)
        async with github.host() as host:
            assert await host.read_pull_request(github.repo, ONE)
            github.github.faults.plan(RespondsWith(404), "/pulls/1$")
            with pytest.raises(HostUnavailable, match="which it showed before") as error:
                await host.read_pull_request(github.repo, ONE)
            assert not isinstance(error.value, HostRefused)
            assert await host.read_pull_request(github.repo, ONE)
            github.github.faults.plan(RespondsWith(404), "/pulls/1$", times=ALWAYS)
            for _ in range(2):
                with pytest.raises(HostUnavailable, match="which it showed before"):
                    await host.read_pull_request(github.repo, ONE)
                clock.move_to(later(clock.now(), 3 * SECOND))
            assert await host.read_pull_request(github.repo, ONE) is None
            assert await host.read_pull_request(github.repo, ONE) is None


@asynchronous
async def test_an_unknown_pull_request_is_missing_at_once(github: GithubEnvironment):
    async with github.host() as host:
        assert await host.read_pull_request(github.repo, ONE) is None


@asynchronous
async def test_an_ended_version_of_the_api_does_not_make_pull_requests_disappear(github: GithubEnvironment):
    github.open(1)
    github.github.faults.plan(RespondsWith(410, body=b'{"message": "This version has ended."}'), times=ALWAYS)
    async with github.host() as host:
        for reading in (
            lambda: host.read_pull_request(github.repo, ONE),
            lambda: host.refs(github.repo, ["main"]),
            lambda: host.statuses(github.repo, github.change().head, "main"),
            lambda: host.has_repository(github.repo),
        ):
            with pytest.raises(HostUnavailable, match="update Mergeyard"):
                await reading()


@asynchronous
async def test_the_url_of_a_pull_request_is_its_web_page(github: GithubEnvironment):
    async with github.host(web_url="https://github.com") as host:
        assert host.pull_request_url(github.repo, ONE) == "https://github.com/acme/app/pull/1"


# Names


BAD_NAMES = ["", ".", "..", "a/b", "a%2Fb", "a b", "a\n", "a?b", "a#b", "ä", "x" * 101]


@asynchronous
async def test_an_invalid_name_never_becomes_part_of_a_url(github: GithubEnvironment):
    async with github.host() as host:
        for repo in (repo for name in BAD_NAMES for repo in (Repo(NAME, name, "app"), Repo(NAME, "acme", name))):
            assert not await host.has_repository(repo), repo
            with pytest.raises(HostUnavailable, match="not a valid"):
                await host.read_pull_request(repo, ONE)
            with pytest.raises(HostUnavailable, match="not a valid"):
                await host.remote(repo)
    assert github.github.faults.calls == []


@asynchronous
async def test_names_in_capitals_are_the_same_repository(github: GithubEnvironment):
    github.open(1)
    shouted = Repo(NAME, "ACME", "App")
    async with github.host() as host:
        assert host.canonical_repo(shouted) == github.repo
        assert await host.has_repository(shouted)
        assert await host.read_pull_request(shouted, ONE) == await host.read_pull_request(github.repo, ONE)


# Refs


@asynchronous
async def test_branches_with_slashes_are_found_and_absent_ones_left_out(github: GithubEnvironment):
    tip = github.acme.push_commit("release/1.0", {"b.txt": "1"})
    async with github.host() as host:
        refs = await host.refs(github.repo, {"release/1.0", "nowhere", "main"})
        assert refs == {"refs/heads/release/1.0": tip, "refs/heads/main": github.origin.tip("main")}


@asynchronous
async def test_every_change_of_a_pull_request_changes_its_refs(github: GithubEnvironment):
    github.open(1)
    github.open(2)
    async with github.host() as host:
        before = await host.refs(github.repo, [])
        for change in (
            lambda: github.acme.add_label(1, "merge-queue"),
            lambda: github.acme.edit(1, title="Another"),
            lambda: github.acme.edit(1, "converted_to_draft", draft=True),
            lambda: github.acme.close(1),
        ):
            change()
            after = await host.refs(github.repo, [])
            assert {host.pull_request_number_of(ref) for ref, _ in after.items() - before.items()} >= {ONE}
            assert after["refs/pull/2/meta"] == before["refs/pull/2/meta"]
            before = after


@asynchronous
async def test_our_own_test_branches_are_no_pull_requests_but_those_of_a_fork_are(github: GithubEnvironment):
    github.acme.push_commit("mergeyard/pr-1/x", {"b.txt": "1"})
    github.acme.open_pull_request("mergeyard/pr-1/x", draft=True)
    github.acme.open_pull_request("mergeyard/pr-1/x", home="mallory/app")
    async with github.host() as host:
        assert {host.pull_request_number_of(ref) for ref in await host.refs(github.repo, [])} == {TWO}


@asynchronous
async def test_unchanged_data_is_not_downloaded_again(github: GithubEnvironment):
    github.open(1)
    async with github.host() as host:
        once = await host.refs(github.repo, ["main"])
        assert await host.refs(github.repo, ["main"]) == once
        github.github.faults.plan(RespondsWith(304, body=b""), times=2)
        assert await host.refs(github.repo, ["main"]) == once


@pytest.mark.long
@asynchronous
async def test_only_pull_requests_that_changed_since_the_last_read_are_read(tmp_path: Path):
    """The others stay as they were: a missing one would look like a change."""
    clock = ManualClock()
    with github_environment(tmp_path, clock) as github:
        github.open(1)
        for _ in range(2, 71):
            clock.move_to(later(clock.now(), SECOND))
            github.acme.open_pull_request("topic-1", home="mallory/app")
        clock.move_to(later(clock.now(), MINUTE))
        async with github.host() as host:
            before = await host.refs(github.repo, [])
            assert len(before) == 2 * 70
            assert list_pages(github) == ["per_page=100"]
            assert await host.refs(github.repo, []) == before
            assert list_pages(github) == ["per_page=30&page=1"]
            for number in (*range(1, 25), *range(60, 71)):
                github.acme.edit(number, title="Another")
            after = await host.refs(github.repo, [])
            assert list_pages(github) == ["per_page=30&page=1", "per_page=30&page=2"]
            changed = {host.pull_request_number_of(ref) for ref, _ in after.items() ^ before.items()}
            clock.move_to(later(clock.now(), 10 * MINUTE))
            await host.refs(github.repo, [])
            assert list_pages(github) == ["per_page=100"]
        assert changed == {*range(1, 25), *range(60, 71)}


@asynchronous
async def test_changes_in_the_second_of_the_last_read_are_read(github: GithubEnvironment):
    """Although GitHub's timestamps do not differ then."""
    github.open(1)
    for _ in range(2, 41):
        github.acme.open_pull_request("topic-1", home="mallory/app")
    async with github.host() as host:
        before = await host.refs(github.repo, [])
        for number in (1, 40):
            github.acme.edit(number, title="Another")
        after = await host.refs(github.repo, [])
    assert {host.pull_request_number_of(ref) for ref, _ in after.items() ^ before.items()} == {1, 40}


@pytest.mark.long
@asynchronous
async def test_a_repository_is_polled_for_a_hundred_pull_requests_at_most(tmp_path: Path):
    clock = ManualClock()
    with github_environment(tmp_path, clock) as github:
        github.open(1)
        for _ in range(2, 131):
            github.acme.open_pull_request("topic-1", home="mallory/app")
        async with github.host() as host:
            for newest in (130, 125):
                refs = await host.refs(github.repo, [])
                assert len(refs) == 2 * 100
                assert f"refs/pull/{newest}/head" in refs
                clock.move_to(later(clock.now(), MINUTE))
                for number in range(1, 126):
                    github.acme.edit(number, title="Another")
        assert list_pages(github) == ["per_page=100", *(f"per_page=30&page={page}" for page in range(1, 5))]


def list_pages(env: GithubEnvironment) -> list[str]:
    """The pages of pull requests that were read since the last call."""
    calls = [call for call in env.github.faults.calls if "/pulls?" in call]
    env.github.faults.calls.clear()
    return [call.partition("direction=desc&")[2] for call in calls]


@asynchronous
async def test_a_stale_response_is_followed_by_a_current_one(github: GithubEnvironment):
    old = github.open(1)
    github.github.faults.plan(RepeatsFirstResponse(), "/pulls/1", times=2)
    async with github.host() as host:
        assert await host.read_pull_request(github.repo, ONE)
        new = github.push(1)
        for head in (old, new):
            pull_request = await host.read_pull_request(github.repo, ONE)
            assert pull_request
            assert pull_request.head == head


@asynchronous
async def test_a_recent_change_is_read_once_more(tmp_path: Path):
    """More can have happened in the same second without another timestamp."""
    clock = ManualClock()
    with github_environment(tmp_path, clock) as github:
        github.open(1)
        async with github.host() as host:
            readings = [await host.refs(github.repo, [])]
            for _ in range(3):
                clock.move_to(later(clock.now(), 2 * SECOND))
                readings.append(await host.refs(github.repo, []))
        assert [one == other for one, other in pairwise(readings)] == [False, True, True]


# Required statuses


@asynchronous
async def test_required_statuses_come_from_protection_and_from_rulesets_without_our_own(github: GithubEnvironment):
    github.acme.protections["main"] = BranchProtection(contexts=["unit", "mergeyard"])
    github.acme.rulesets["main"] = BranchProtection(contexts=["lint", "unit"])
    async with github.host() as host:
        assert await host.required_statuses(github.repo, "main") == ("lint", "unit")


@asynchronous
async def test_an_unprotected_or_missing_branch_requires_nothing(github: GithubEnvironment):
    async with github.host() as host:
        assert await host.required_statuses(github.repo, "main") == ()
        assert await host.required_statuses(github.repo, "no/where") == ()


@asynchronous
async def test_a_plan_without_rulesets_has_no_rules(github: GithubEnvironment):
    github.acme.protections["main"] = BranchProtection(contexts=["unit"])
    message = b'{"message": "Upgrade to GitHub Pro or make this repository public to enable this feature."}'
    github.github.faults.plan(RespondsWith(403, body=message), "/rules/")
    async with github.host() as host:
        assert await host.required_statuses(github.repo, "main") == ("unit",)


@asynchronous
async def test_unreadable_rules_are_an_error_and_not_an_empty_result(github: GithubEnvironment):
    github.acme.protections["main"] = BranchProtection(contexts=["unit"])
    github.github.faults.plan(RespondsWith(403), "/rules/")
    async with github.host() as host:
        with pytest.raises(HostRefused):
            await host.required_statuses(github.repo, "main")


# Visibility


@asynchronous
async def test_a_repository_that_is_no_longer_visible_is_an_error_and_not_empty(github: GithubEnvironment):
    head = github.open(1)
    async with github.host() as host:
        assert await host.read_pull_request(github.repo, ONE)
        github.github.faults.plan(RespondsWith(404), times=ALWAYS)
        for reading in (
            lambda: host.read_pull_request(github.repo, ONE),
            lambda: host.refs(github.repo, ["main"]),
            lambda: host.thread(github.repo, ONE, Instant(0)),
            lambda: host.statuses(github.repo, head, "main"),
            lambda: host.required_statuses(github.repo, "main"),
            lambda: host.can_write(github.repo, "ada", "main"),
        ):
            with pytest.raises(HostAccessLost, match="not visible to us") as error:
                await reading()
            assert not isinstance(error.value, HostRefused)
        assert not await host.has_repository(github.repo)


async def opinion_of(host: GithubHost, env: GithubEnvironment, number: PullRequestNumber = ONE) -> Mergeability:
    pull_request = await host.read_pull_request(env.repo, number)
    assert pull_request
    return pull_request.mergeability


@asynchronous
async def test_a_pull_request_without_obstacles_is_mergeable(github: GithubEnvironment):
    github.open(1)
    async with github.host() as host:
        assert await opinion_of(host, github) is Mergeability.MERGEABLE


@asynchronous
async def test_mergeability_is_checking_while_github_computes_it(github: GithubEnvironment):
    github.open(1, being_checked=1)
    async with github.host() as host:
        assert await opinion_of(host, github) is Mergeability.CHECKING
        assert await opinion_of(host, github) is Mergeability.MERGEABLE


@asynchronous
async def test_a_conflict_makes_a_pull_request_unmergeable(github: GithubEnvironment):
    github.open(1, files={"a.txt": "mine"})
    github.acme.push_commit("main", {"a.txt": "theirs"})
    async with github.host() as host:
        assert await opinion_of(host, github) is Mergeability.CHECKING
        assert await opinion_of(host, github) is Mergeability.NOT_MERGEABLE


@asynchronous
async def test_a_moved_target_branch_does_not_make_a_pull_request_unmergeable(github: GithubEnvironment):
    github.open(1)
    github.acme.push_commit("main", {"b.txt": "1"})
    async with github.host() as host:
        assert await opinion_of(host, github) is Mergeability.CHECKING
        assert await opinion_of(host, github) is Mergeability.MERGEABLE


@asynchronous
async def test_a_failing_optional_status_does_not_make_a_pull_request_unmergeable(github: GithubEnvironment):
    github.acme.report_status(github.open(1), "lint", "failure")
    async with github.host() as host:
        assert await opinion_of(host, github) is Mergeability.MERGEABLE
