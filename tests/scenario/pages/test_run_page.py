"""The page of a run: what it tests upon what, how far it is, and what was reported."""

from pathlib import Path

from mergeyard.domain.config import Config, Mode
from mergeyard.domain.repositories import Repo
from mergeyard.domain.targets import named
from tests.support.asynchronous import asynchronous
from tests.support.browsing import a_visitor
from tests.support.scenario import MINUTE, Stage, a_scenario

UNHURRIED = Stage(look_every=60 * MINUTE)


@asynchronous
async def test_a_run_under_way_shows_its_stack_its_statuses_and_its_time(tmp_path: Path):
    async with a_scenario(tmp_path, stage=UNHURRIED) as scenario, a_visitor(scenario) as visitor:
        scenario.open(1, 2)
        scenario.set_pull(2, title="<b>Change</b> 2")
        await scenario.submit(1, 2)
        await scenario.passes(2, check="docs")
        await scenario.time_passes(3 * MINUTE)
        run = scenario.run_of(2)
        page = await visitor.get(f"/runs/{run.id}")
        assert page.title == f"Run {run.id[:8]} · Mergeyard"
        assert "It tests #2 as it would merge, upon #1." in page.text
        assert "It has gone on for 3 min" in page.text
        base, beneath, tested, tip = page.one("ol.train").all("li")
        assert run.base[:8] in base.text
        assert (beneath["class"], tested["class"]) == ("beneath", "tested")
        assert "#2 <b>Change</b> 2" in tested.text
        assert run.chain[0].commit[:8] in beneath.text
        assert run.tip[:8] in tip.text
        assert [each.text for each in page.one("section[aria-labelledby=required]").all("li")] == [
            "not reported yet unit"
        ]
        assert "passed docs" in page.one("section[aria-labelledby=others]").text
        assert run.tip in [each["data-copy"] for each in page.all("button[data-copy]")]
        assert page.one("#live")["data-live"] == "/live/git.local/acme/app:main"
        assert (await visitor.get(f"/runs/{run.id}-bisection")).status == 200


@asynchronous
async def test_a_run_that_is_over_stays_readable_and_does_not_move(tmp_path: Path):
    async with a_scenario(tmp_path, stage=UNHURRIED) as scenario, a_visitor(scenario) as visitor:
        scenario.open(1)
        await scenario.submit(1)
        run = scenario.run_of(1)
        await scenario.time_passes(2 * MINUTE)
        await scenario.passes(1)
        page = await visitor.get(f"/runs/{run.id}")
        assert page.one("h2#now").text == "passed"
        assert "It took 2 min, about as usual." in page.text
        assert page.all("[data-live]") == []


@asynchronous
async def test_a_bare_run_and_a_bisection_say_what_they_are_for(tmp_path: Path):
    config = Config(batch=True, batching_min_size=2)
    async with a_scenario(tmp_path, config) as scenario, a_visitor(scenario) as visitor:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        await scenario.fails(1, 2)
        bare = await visitor.get(f"/runs/{scenario.run_of().id}")
        assert "It tests main itself, with no pull request" in bare.text
        assert [each["class"] for each in bare.one("ol.train").all("li")] == ["base", "tip"]
        await scenario.passes()
        sought = await visitor.get(f"/runs/{scenario.run_of(1).id}")
        assert "A batch was red, and the guilty one is sought: it tests #1." in sought.text


@asynchronous
async def test_the_targets_of_a_run_are_told_apart(tmp_path: Path):
    async with a_scenario(tmp_path, Config(mode=Mode.PARALLEL)) as scenario, a_visitor(scenario) as visitor:
        scenario.open(1, 2)
        await scenario.set_targets(1, named("app"))
        await scenario.set_targets(2, named("app", "docs"))
        await scenario.submit(1, 2)
        page = await visitor.get(f"/runs/{scenario.run_of(1).id}")
        assert [each.text for each in page.all("ul.targets")] == ["app"]
        page = await visitor.get(f"/runs/{scenario.run_of(2).id}")
        assert [each.text for each in page.all("ul.targets")] == ["app docs", "app docs"]


@asynchronous
async def test_runs_of_repositories_that_one_may_not_see_do_not_exist(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        address = f"/runs/{scenario.run_of(1).id}"
        async with a_visitor(scenario, repos=(Repo("git.local", "acme", "other"),)) as other:
            assert (await other.get(address)).status == 404
            assert (await other.get(f"{address}/output/unit")).status == 404
        async with a_visitor(scenario) as visitor:
            for odd in ("x", "0" * 36, "%00" * 12, "../../etc"):
                assert (await visitor.get(f"/runs/{odd}")).status == 404
