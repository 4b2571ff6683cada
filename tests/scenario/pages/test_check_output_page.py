"""What a check wrote: as a page for people, as text for programs."""

from pathlib import Path

import httpx

from mergeyard.domain.ids import RunId
from mergeyard.domain.tokens import Scope
from mergeyard.ports.host import ChecksFrom
from mergeyard.settings import Settings
from mergeyard.wiring import make_application
from tests.support.asynchronous import asynchronous
from tests.support.browsing import a_visitor
from tests.support.scenario import Scenario, Stage, a_scenario

BROWSER = "text/html,application/xhtml+xml;q=0.9"
RULES = """
version = 1
required_statuses = ["unit", "a/b c"]
[checks]
unit = "echo '<b>bold</b>'; printf '\\\\033[32mgreen\\\\033[0m'"
"a/b c" = "true"
"""


async def a_run(scenario: Scenario) -> RunId:
    scenario.open(1)
    await scenario.submit(1)
    run = (await scenario.stay(1)).verified_by
    assert run
    return run


@asynchronous
async def test_output_is_text_with_its_end_in_view_and_the_whole_beside_it(tmp_path: Path):
    stage = Stage(rules=RULES, checks=ChecksFrom.RUN)
    async with a_scenario(tmp_path, stage=stage) as scenario, a_visitor(scenario) as visitor:
        run = await a_run(scenario)
        address = f"/runs/{run}/output/unit"
        assert address in (await visitor.get(f"/runs/{run}")).links()
        page = await visitor.get(address)
        assert page.one("h1").text == "unit"
        assert page.one(".terminal").one("pre").text == "<b>bold</b> green"
        assert page.all("[data-look-every]") == []
        whole = await visitor.get(f"{address}?raw")
        assert whole.html == "<b>bold</b>\n\x1b[32mgreen\x1b[0m"
        assert whole.headers["content-type"] == "text/plain; charset=utf-8"
        assert whole.headers["x-content-type-options"] == "nosniff"
        silent = await visitor.get(f"/runs/{run}/output/a%2Fb%20c")
        assert (silent.status, "It wrote nothing." in silent.text) == (200, True)
        none = await visitor.get(f"/runs/{run}/output/lint")
        assert (none.status, none.one(".empty").one("h2").text) == (404, "No output here")


@asynchronous
async def test_the_link_of_a_status_leads_people_to_the_page_and_gives_programs_the_text(tmp_path: Path):
    stage = Stage(rules=RULES, checks=ChecksFrom.RUN)
    async with a_scenario(tmp_path, stage=stage) as scenario:
        run = await a_run(scenario)
        _, secret = await scenario.service.tokens.create("ci", {Scope.READ}, ())
        application = make_application(Settings(data_dir=tmp_path), scenario.service, "http://yard.example")
        transport = httpx.ASGITransport(application)  # pyright: ignore[reportArgumentType]
        async with httpx.AsyncClient(transport=transport, base_url="http://yard.example") as client:
            link, token = f"/runs/{run}/checks/a%2Fb%20c", {"x-api-token": secret}
            led = await client.get(link, headers={"accept": BROWSER})
            assert (led.status_code, led.headers["location"]) == (303, f"/runs/{run}/output/a%2Fb%20c")
            asked_in = await client.get(led.headers["location"], headers={"accept": BROWSER})
            assert asked_in.headers["location"].startswith("/sign-in?next=")
            text = await client.get(f"/runs/{run}/checks/unit", headers=token | {"accept": BROWSER})
            assert (text.status_code, text.content) == (200, b"<b>bold</b>\n\x1b[32mgreen\x1b[0m")
            nobody = await client.get(link, headers={"accept": "*/*"})
            assert (nobody.status_code, nobody.json()["code"]) == (401, "missing_token")
