"""What only Gitea keeps to itself: whether it has looked already, and why it will not merge."""

from mergeyard.domain.config import Config, LandingMethod
from tests.scenario.forges.conftest import Stories
from tests.support.asynchronous import asynchronous
from tests.support.forge_scenario import USUAL, ForgeScenario
from tests.support.forges.gitea.nouns import Blocker
from tests.support.meeting_places.gitea import GiteaPlace

BY_GITEA = Config(landing=LandingMethod.PROVIDER_MERGE)


def depend(scenario: ForgeScenario, number: int, on: int) -> None:
    assert isinstance(scenario.place, GiteaPlace)
    acme = scenario.place.acme
    acme.pulls[number].blockers.append(Blocker(acme, acme.pulls[on]))


@asynchronous
async def test_one_that_gitea_never_gets_to_check_is_tested_and_lands(gitea_story: Stories):
    async with gitea_story(poll_seconds=USUAL) as scenario:
        scenario.open(1)
        scenario.place.ponder(1)
        await scenario.submit(1)
        assert await scenario.state(1) == "not_ready: mergeability_unknown"
        await scenario.a_minute_passes()
        assert scenario.picture == "main ← 1…"
        await scenario.passes(1)
        await scenario.a_minute_passes()
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_one_that_gitea_checks_anew_while_it_is_tested_lands(gitea_story: Stories):
    async with gitea_story(poll_seconds=USUAL) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        scenario.place.ponder(1)
        await scenario.passes(1)
        await scenario.a_minute_passes()
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_a_conflict_that_gitea_may_not_have_looked_for_is_found_by_git(gitea_story: Stories):
    async with gitea_story(poll_seconds=USUAL) as scenario:
        scenario.open(1, files={"a.txt": "ours"})
        scenario.place.push_to_main({"a.txt": "theirs"})
        await scenario.submit(1)
        await scenario.a_minute_passes()
        assert await scenario.state(1) == "not_ready: not_mergeable"


@asynchronous
async def test_one_that_gitea_would_not_merge_while_it_was_checking_waits_and_is_merged_later(gitea_story: Stories):
    async with gitea_story(BY_GITEA, poll_seconds=USUAL) as scenario:
        scenario.open(1, 2)
        scenario.place.ponder(1)
        await scenario.submit(1)
        await scenario.a_minute_passes()
        await scenario.submit(2)
        await scenario.passes(1)
        await scenario.a_minute_passes()
        assert await scenario.state(1) == "not_ready: not_mergeable"
        await scenario.passes(2)
        assert await scenario.state(2) == "merged: merged_by_queue"
        scenario.place.decide(1)
        await scenario.a_minute_passes()
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_one_that_depends_on_something_open_fails_with_words_and_blocks_nobody(gitea_story: Stories):
    async with gitea_story(BY_GITEA, poll_seconds=USUAL) as scenario:
        scenario.open(1, 2, 3)
        depend(scenario, 1, on=3)
        await scenario.submit(1, 2)
        await scenario.passes(1)
        assert await scenario.state(1) == "failed: merge_refused"
        assert "it depends on #3" in scenario.comment(1)
        await scenario.passes(2)
        assert await scenario.state(2) == "merged: merged_by_queue"


@asynchronous
async def test_one_that_depends_on_the_one_ahead_of_it_is_merged_after_that(gitea_story: Stories):
    async with gitea_story(BY_GITEA, poll_seconds=USUAL) as scenario:
        scenario.open(1, 2)
        depend(scenario, 2, on=1)
        await scenario.submit(1, 2)
        await scenario.passes(2)
        await scenario.passes(1)
        assert [await scenario.state(number) for number in (1, 2)] == ["merged: merged_by_queue"] * 2
