"""The page of a run: its stack, its progress, the reported checks, and the output of local checks."""

from pathlib import Path

import httpx2

from mergeyard.domain.access import Scope
from mergeyard.domain.config import Config, Mode
from mergeyard.domain.ids import Repo, RunId
from mergeyard.domain.journal import PullRequestChanged
from mergeyard.domain.pull_requests import impacted_targets_from_names
from mergeyard.ports.forge import ChecksFrom
from mergeyard.settings import Settings
from mergeyard.wiring import make_application
from tests.support.asynchronous import asynchronous
from tests.support.scenario import KEY, MINUTE, Scenario, ScenarioSetup, a_scenario
from tests.support.web_client import Element, a_signed_in_client

RARE_POLLING = ScenarioSetup(poll_interval_ms=60 * MINUTE)


@asynchronous
async def test_run_in_progress_shows_its_stack_statuses_and_duration(tmp_path: Path):
    async with a_scenario(tmp_path, setup=RARE_POLLING) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1, 2)
        scenario.set_pull_request(2, title="<b>Change</b> 2")
        await scenario.submit(1, 2)
        await scenario.passes(2, check="docs")
        await scenario.advance_time(3 * MINUTE)
        run = scenario.run_of(2)
        page = await visitor.get(f"/runs/{run.id}")
        assert page.title == f"● Test run for #2 ({run.id[:8]}) · Mergeyard"
        assert page.one("h1").text == f"Test run for #2 ({run.id[:8]})"
        assert "Tests #2 on top of #1." in page.text
        assert "3 min elapsed (no typical duration yet) · 0 of 1 check reported" in page.text
        base, ahead, tested, tip = page.one("ol.train").all("li")
        assert run.base[:8] in base.text
        assert (ahead["class"], tested["class"]) == ("ahead", "tested")
        assert "#2 <b>Change</b> 2" in tested.text
        assert "#1 Change 1" in ahead.text
        assert run.chain[0].commit[:8] in ahead.text
        assert run.tip[:8] in tip.text
        assert [each.text for each in page.one("section[aria-labelledby=required]").all("li")] == ["pending unit"]
        assert "passed docs" in page.one("section[aria-labelledby=others]").text
        assert run.tip in [each["data-copy"] for each in page.all("button[data-copy]")]
        assert page.one("#live")["data-live"] == "/live/git.local/acme/app:main"
        assert (await visitor.get(f"/runs/{run.id}-bisection")).status == 200


@asynchronous
async def test_finished_run_remains_readable_without_live_updates(tmp_path: Path):
    async with a_scenario(tmp_path, setup=RARE_POLLING) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1)
        await scenario.submit(1)
        run = scenario.run_of(1)
        await scenario.advance_time(2 * MINUTE)
        await scenario.passes(1)
        page = await visitor.get(f"/runs/{run.id}")
        assert page.one("h2#now").text == "Passed"
        assert "Took 2 min (typically 2 min)" in page.text
        assert page.one("section[aria-labelledby=required]").one("li").text == "passed unit after 2 min"
        assert page.all("section[aria-labelledby=others]") == []
        assert page.all("[data-live]") == []


@asynchronous
async def test_cancelled_run_says_so_and_keeps_the_titles_of_prs_that_merged(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1, 2, 3)
        await scenario.submit(1, 2, 3)
        cancelled, merged = scenario.run_of(3), scenario.run_of(1)
        await scenario.passes(1)
        await scenario.cancel(2)
        page = await visitor.get(f"/runs/{cancelled.id}")
        assert page.one("h2#now").text == "Stopped"
        assert page.one("section[aria-labelledby=required]").one("li").text == "not reported unit"
        assert "#1 Change 1" in page.one("ol.train").text
        assert page.one("ol.train").classes == ["train", "cancelled"]
        assert (await visitor.get(f"/runs/{merged.id}")).one("ol.train").classes == ["train", "succeeded"]


@asynchronous
async def test_base_run_and_bisection_show_their_purpose(tmp_path: Path):
    config = Config(batch=True, batching_min_size=2)
    async with a_scenario(tmp_path, config) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        await scenario.fails(1, 2)
        bare = await visitor.get(f"/runs/{scenario.run_of().id}")
        assert "Baseline run for main" in bare.one("h1").text
        assert "Tests main alone" in bare.text
        assert [each["class"] for each in bare.one("ol.train").all("li")] == ["base", "tip"]
        await scenario.passes()
        sought = await visitor.get(f"/runs/{scenario.run_of(1).id}")
        assert "Bisection run for #1" in sought.one("h1").text
        assert "Tests #1, to find the culprit of a failed batch." in sought.text


@asynchronous
async def test_impacted_targets_of_a_run_are_grouped(tmp_path: Path):
    async with a_scenario(tmp_path, Config(mode=Mode.PARALLEL)) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1, 2)
        await scenario.upload_impacted_targets(1, impacted_targets_from_names("app"))
        await scenario.upload_impacted_targets(2, impacted_targets_from_names("app", "docs"))
        await scenario.submit(1, 2)
        page = await visitor.get(f"/runs/{scenario.run_of(1).id}")
        assert [each.text for each in page.all("ul.targets")] == ["app"]
        page = await visitor.get(f"/runs/{scenario.run_of(2).id}")
        assert [each.text for each in page.all("ul.targets")] == ["app docs", "app docs"]


@asynchronous
async def test_impacted_targets_are_hidden_where_they_have_no_effect(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1)
        await scenario.upload_impacted_targets(1, impacted_targets_from_names("app"))
        await scenario.submit(1)
        page = await visitor.get(f"/runs/{scenario.run_of(1).id}")
        assert page.all("section[aria-labelledby=targets]") == []


@asynchronous
async def test_run_of_a_repository_that_the_visitor_cannot_see_does_not_exist(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        address = f"/runs/{scenario.run_of(1).id}"
        async with a_signed_in_client(scenario, repos=(Repo("git.local", "acme", "other"),)) as other:
            assert (await other.get(address)).status == 404
            assert (await other.get(f"{address}/output/unit")).status == 404
        async with a_signed_in_client(scenario) as visitor:
            for odd in ("x", "0" * 36, "%00" * 12, "../../etc"):
                assert (await visitor.get(f"/runs/{odd}")).status == 404


BROWSER = "text/html,application/xhtml+xml;q=0.9"
RULES = """
version = 1
required_statuses = ["unit", "a/b c"]
[checks]
unit = "echo '<b>bold</b>'; printf '\\\\033[32mgreen\\\\033[0m'"
"a/b c" = "true"
"""


async def merge_and_get_run(scenario: Scenario) -> RunId:
    scenario.open(1)
    await scenario.submit(1)
    run = (await scenario.submission(1)).verified_by
    assert run
    return run


@asynchronous
async def test_output_page_shows_the_end_and_links_to_the_whole_text(tmp_path: Path):
    stage = ScenarioSetup(repository_config=RULES, checks=ChecksFrom.RUN)
    async with a_scenario(tmp_path, setup=stage) as scenario, a_signed_in_client(scenario) as visitor:
        run = await merge_and_get_run(scenario)
        address = f"/runs/{run}/output/unit"
        assert address in (await visitor.get(f"/runs/{run}")).links()
        page = await visitor.get(address)
        assert page.one("h1").text == "unit"
        bold, green = [each for each in page.one(".terminal").one("pre").children if isinstance(each, Element)]
        assert (bold["id"], bold.text) == ("L1", "1<b>bold</b>")
        assert (green.one("a")["href"], green.one(".c2").text) == ("#L2", "green")
        assert page.all("[data-look-every]") == []
        whole = await visitor.get(f"{address}?raw")
        assert whole.html == "<b>bold</b>\n\x1b[32mgreen\x1b[0m"
        assert whole.headers["content-type"] == "text/plain; charset=utf-8"
        assert whole.headers["x-content-type-options"] == "nosniff"
        silent = await visitor.get(f"/runs/{run}/output/a%2Fb%20c")
        assert (silent.status, "The command wrote no output." in silent.text) == (200, True)
        none = await visitor.get(f"/runs/{run}/output/lint")
        assert (none.status, none.one(".empty").one("h2").text) == (404, "No output")


LOUD = """
version = 1
[checks]
unit = "seq 1 3; echo 'an <Error> here'; seq 5 9; echo error again; exit 1"
"""


@asynchronous
async def test_output_page_finds_lines_without_scripts(tmp_path: Path):
    stage = ScenarioSetup(repository_config=LOUD, checks=ChecksFrom.RUN)
    async with a_scenario(tmp_path, setup=stage) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1)
        await scenario.submit_without_waiting(1)
        await scenario.wait_until_idle()
        (run, *_) = [
            entry.run
            for entry in await scenario.service.submission_queries.read_timeline(KEY, (await scenario.submission(1)).id)
            if isinstance(entry, PullRequestChanged) and entry.run
        ]
        address = f"/runs/{run}/output/unit"
        page = await visitor.get(address)
        assert "Line 4: first match of “error”" in [link.text for link in page.all("a[href=#L4]")]
        leads = await visitor.get(f"{address}?q=%3CERROR&wrap=off")
        assert (leads.status, leads.headers["location"]) == (303, f"{address}?q=%3CERROR&hit=1&wrap=off#L4")
        found = await visitor.get(f"{address}?q=%3CERROR&hit=1")
        assert "1 of 1 matching line" in found.text
        assert [each["id"] for each in found.all("span.hit")] == ["L4"]
        assert found.one("mark").text == "<Error"
        assert found.one("input#output-search")["value"] == "<ERROR"
        first = await visitor.get(f"{address}?q=error&hit=1&wrap=off")
        assert "1 of 2 matching lines" in first.text
        assert "unwrapped" in first.one("pre").classes
        assert first.all("a[rel=prev]") == []
        second = await visitor.get(first.one("a[rel=next]")["href"].partition("#")[0])
        assert first.one("a[rel=next]")["href"].endswith("?q=error&hit=2&wrap=off#L10")
        assert second.one("span.current")["id"] == "L10"
        assert second.all("a[rel=next]") == []
        none = await visitor.get(f"{address}?q=nothing&hit=x")
        assert "No line contains “nothing”" in none.text
        assert (await visitor.get(f"{address}?q={'x' * 5000}")).status == 200


@asynchronous
async def test_status_link_shows_the_page_to_browsers_and_the_text_to_programs(tmp_path: Path):
    stage = ScenarioSetup(repository_config=RULES, checks=ChecksFrom.RUN)
    async with a_scenario(tmp_path, setup=stage) as scenario:
        run = await merge_and_get_run(scenario)
        _, secret = await scenario.service.tokens.create("ci", {Scope.READ}, ())
        application = make_application(Settings(data_dir=tmp_path), scenario.service, "http://yard.example")
        transport = httpx2.ASGITransport(application)  # pyright: ignore[reportArgumentType]
        async with httpx2.AsyncClient(transport=transport, base_url="http://yard.example") as client:
            link, token = f"/runs/{run}/checks/a%2Fb%20c", {"x-api-token": secret}
            led = await client.get(link, headers={"accept": BROWSER})
            assert (led.status_code, led.headers["location"]) == (303, f"/runs/{run}/output/a%2Fb%20c")
            asked_in = await client.get(led.headers["location"], headers={"accept": BROWSER})
            assert asked_in.headers["location"].startswith("/sign-in?next=")
            text = await client.get(f"/runs/{run}/checks/unit", headers=token | {"accept": BROWSER})
            assert (text.status_code, text.content) == (200, b"<b>bold</b>\n\x1b[32mgreen\x1b[0m")
            anonymous = await client.get(link, headers={"accept": "*/*"})
            assert (anonymous.status_code, anonymous.json()["code"]) == (401, "missing_token")
