"""The page of a queue: the graph, the lists, their cost, and the permissions."""

from pathlib import Path
from time import process_time
from typing import cast

from msgspec.structs import replace

from mergeyard.domain.access import Scope
from mergeyard.domain.config import Config, LandingMethod, Mode
from mergeyard.domain.events import AuditMismatchFound, HostUnreachable, Mismatch, MismatchKind
from mergeyard.domain.ids import PullRequestNumber, Repo
from mergeyard.domain.pull_requests import Status, StatusState, impacted_targets_from_names
from mergeyard.domain.runs import Run
from mergeyard.domain.states import QueueState
from mergeyard.domain.timestamps import MergeEstimate
from mergeyard.service.repositories import WARNINGS_REFRESH_AFTER_MS
from mergeyard.web.formats import format_time_until
from mergeyard.web.queues import MAX_ROWS
from tests.support.asynchronous import asynchronous
from tests.support.builders import a_plain_queue, a_submission
from tests.support.forge_drivers.driver import BOT
from tests.support.forge_drivers.github import GithubDriver
from tests.support.forge_scenario import a_forge_scenario
from tests.support.forges.github.world import BranchProtection
from tests.support.scenario import KEY, MINUTE, REPO, SECOND, Scenario, ScenarioSetup, a_scenario
from tests.support.web_client import Page, a_signed_in_client

HERE = "/queues/git.local/acme/app:main"
REVIEWS = BranchProtection(approvals=1)
HOSTILE = "<img src=x onerror=alert(1)>\u202e\"'"


def batches(page: Page) -> list[str]:
    return [batch["aria-label"] for batch in page.all("article.wagon")]


def figures(page: Page) -> dict[str, str]:
    """The numbers at the top of the page by their labels."""
    figures = page.one("dl.figures")
    return {label.text: value.text for label, value in zip(figures.all("dt"), figures.all("dd"), strict=True)}


def rows_of(page: Page, section: str) -> list[str]:
    """The pull requests that a section lists."""
    sections = [each for each in page.all("section") if each["aria-labelledby"] == section]
    return [row.one(".what").one("b").text for each in sections for row in each.all("li")]


def animated_ids(page: Page) -> list[str]:
    return [element["data-moves"] for element in page.all("[data-moves]")]


async def report_with_url(scenario: Scenario, run: Run, url: str) -> None:
    """CI reports that the check `unit` failed, with a link to its result."""
    status = Status(context="unit", state=StatusState.FAILURE, at=scenario.clock.now(), url=url)
    await scenario.service.statuses.report(REPO, run.tip, status)
    await scenario.wait_until_idle()


@asynchronous
async def test_empty_queue_shows_the_target_branch_and_what_to_do(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        page = await visitor.get(HERE)
        assert page.status == 200
        assert page.one("h1").text == "acme/app main"
        assert page.one(".station").one("h3").text == "main"
        assert page.title == "acme/app main · 0 queued · Mergeyard"
        assert "Nothing is being tested" in page.text
        assert figures(page)["Next merge"] == "nothing is queued"
        assert "Nothing has finished yet. Add a pull request" in page.text


@asynchronous
async def test_active_batches_are_drawn_in_order(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        await scenario.passes(2)
        page = await visitor.get(HERE)
        assert batches(page) == ["Batch 1, testing", "Batch 2, passed"]
        assert [car.one("a").text for car in page.all("li.car")] == ["#1 Change 1", "#2 Change 2"]
        summaries = [each["aria-label"] for each in page.all("summary")]
        assert summaries == ["0 of 1 check done", "1 of 1 check done"]
        assert [each.text for each in page.all(".place")] == ["Position 1", "Position 2"]
        assert animated_ids(page) == ["batch-1", "pr-1", "batch-2", "pr-2"]


@asynchronous
async def test_run_with_a_known_duration_shows_its_progress(tmp_path: Path):
    seldom = ScenarioSetup(poll_interval_ms=60 * MINUTE)
    async with a_scenario(tmp_path, setup=seldom) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1, 2)
        await scenario.submit(1)
        await scenario.advance_time(8 * MINUTE)
        await scenario.passes(1)
        await scenario.submit(2)
        await scenario.advance_time(4 * MINUTE)
        page = await visitor.get(HERE)
        bar = page.one("svg.bar")
        assert (bar.one(".done")["width"], bar.one(".due")["x"]) == ("40", "80")
        assert page.one(".took").text == "4 min of ~8 min"
        assert figures(page)["Next merge"] == "~4 min"
        await scenario.advance_time(7 * MINUTE)
        page = await visitor.get(HERE)
        assert page.one(".took").text == "11 min, 3 min over"
        assert not page.all("svg.bar")
        assert figures(page)["Next merge"] == "~1 min 10 s running longer than usual"


@asynchronous
async def test_lanes_are_drawn_in_parallel_with_their_shared_targets(tmp_path: Path):
    async with a_scenario(tmp_path, Config(mode=Mode.PARALLEL)) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1, 2, 3)
        for number, targets in (
            (1, impacted_targets_from_names("a")),
            (2, impacted_targets_from_names("b")),
            (3, impacted_targets_from_names("a", "b")),
        ):
            await scenario.upload_impacted_targets(number, targets)
            await scenario.submit(number)
        page = await visitor.get(HERE)
        assert [lane["aria-label"] for lane in page.all("ol.lane")] == ["Lane 1", "Lane 2"]
        assert [overlap.text for overlap in page.all(".stacked-on")] == ["after #1 (shares a)", "after #2 (shares b)"]
        assert page.all(".gap")[-1].all("path")


@asynchronous
async def test_bisection_of_a_failed_batch_is_shown(tmp_path: Path):
    batches = Config(batch=True, batching_min_size=2)
    async with a_scenario(tmp_path, batches) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        failed = scenario.run_of(1, 2)
        await report_with_url(scenario, failed, "https://ci.example/7")
        await scenario.passes()
        page = await visitor.get(HERE)
        bisection = page.one("section.siding")
        assert bisection.one("h3").text == "Bisecting a failed batch"
        assert "About 1 more round" in bisection.text
        assert [cell["rowspan"] for cell in bisection.all("td.known")] == ["2", "1"]
        assert [row.text for row in bisection.all("[scope=row]")] == [
            "#1 Change 1 Ada · possible culprit",
            "#2 Change 2 Ada · possible culprit",
        ]
        links = [link["href"] for link in bisection.one("td.failed").all("a")]
        assert links == [f"/runs/{failed.id}", "https://ci.example/7"]
        assert "unit" in bisection.one(".failing-check").text
        assert (figures(page)["Bisecting"], figures(page)["In active batches"]) == ("2", "0")
        assert page.title.startswith("acme/app main · 2 queued")


@asynchronous
async def test_every_pull_request_is_in_exactly_one_number(tmp_path: Path):
    batches = Config(batch=True, batching_min_size=2, concurrency=2)
    async with a_scenario(tmp_path, batches) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(*range(1, 9))
        scenario.set_pull_request(8, draft=True)
        await scenario.submit(*range(1, 9))
        await scenario.fails(1, 2)
        await scenario.passes()
        page = await visitor.get(HERE)
        numbers = figures(page)
        counted = {name: int(numbers[name]) for name in ("In active batches", "Bisecting", "Waiting", "Not ready")}
        assert sum(counted.values()) == len(scenario.queue_actor.queue.submissions) == 8
        assert (counted["Bisecting"], counted["Not ready"]) == (2, 1)


@asynchronous
async def test_users_find_the_actions_of_a_bisected_pr(tmp_path: Path):
    batches = Config(batch=True, batching_min_size=2)
    async with a_scenario(tmp_path, batches) as scenario, a_signed_in_client(scenario, Scope.SUBMIT) as visitor:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        await scenario.fails(1, 2)
        await scenario.passes()
        bisection = (await visitor.get(HERE)).one("section.siding")
        assert [link["aria-label"] for link in bisection.all("a.more")] == ["Actions for #1", "Actions for #2"]


@asynchronous
async def test_failed_check_is_named_on_the_wagon_with_a_link_to_its_result(tmp_path: Path):
    two_checks = ScenarioSetup(repository_config='version = 1\nrequired_statuses = ["unit", "lint"]\n')
    async with a_scenario(tmp_path, setup=two_checks) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        await report_with_url(scenario, scenario.run_of(2), "https://ci.example/8")
        first, second = (await visitor.get(HERE)).all("article.wagon")
        assert not first.all(".failing-check")
        assert second.one(".failing-check").text == "✗ unit ↗ failed"
        assert second.one(".failing-check").one("a")["href"] == "https://ci.example/8"
        assert [check.text for check in second.one("details").all("li")] == [
            "unit failed",
            "lint pending",
            "Open the test run",
        ]


@asynchronous
async def test_wagon_whose_run_failed_is_not_shown_as_failed_for_good(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        await scenario.fails(2)
        page = await visitor.get(HERE)
        assert batches(page) == ["Batch 1, testing", "Batch 2, failing, cause not confirmed"]
        assert page.all("article.wagon")[1].classes == ["wagon", "failing"]


@asynchronous
async def test_estimates_behind_a_pr_without_one_are_not_shown(tmp_path: Path):
    async with a_scenario(tmp_path, Config(concurrency=1)) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1, 2, 3)
        await scenario.submit(1)
        await scenario.advance_time(2 * SECOND)
        await scenario.passes(1)
        await scenario.submit(2, 3)
        first, second = [(await scenario.submission(number)).id for number in (2, 3)]
        (row,) = [each for each in (await visitor.get(HERE)).all("li") if each.all(".eta") and each.all(".nth")]
        assert row.one(".eta").text
        estimate = MergeEstimate(scenario.clock.now(), scenario.clock.now())
        scenario.queue_actor.forecast = {first: None, second: estimate}
        (row,) = [each for each in (await visitor.get(HERE)).all("li") if each.all(".eta") and each.all(".nth")]
        assert row.one(".eta").text == "no estimate"


@asynchronous
async def test_queue_that_cannot_reach_its_repository_is_not_shown_as_running(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        await scenario.queue_actor.submit(HostUnreachable())
        signal = (await visitor.get(HERE)).one(".signal")
        assert signal.one(".alarm").text == "The queue has not reached the repository at git.local for 0 s."
        assert "State of the queue: Running" in signal.text
        assert "blocked" in signal.classes
        assert "RUNNING" not in signal.classes


@asynchronous
async def test_problems_of_the_list_of_queues_are_on_the_page_of_the_queue(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        await scenario.fails(1)
        await scenario.fails()
        await scenario.advance_time(120 * MINUTE)
        queue = await scenario.service.queues.read(KEY)
        assert queue.overview is not None
        problems = queue.overview.problems
        assert problems == ("main fails its required checks", "Nothing merged for 2 h")
        listed = (await visitor.get("/")).text
        signal = (await visitor.get(HERE)).one(".signal")
        assert [each.text for each in signal.all(".alarm")] == [f"{problem}." for problem in problems]
        assert all(problem in listed for problem in problems)
        assert "blocked" in signal.classes
        assert "RUNNING" not in signal.classes


@asynchronous
async def test_pages_never_show_different_times(tmp_path: Path):
    """The same pull request on its page, in the list, on the page of the queue, and in the API."""
    async with a_scenario(tmp_path, Config(concurrency=1)) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1, 2, 3)
        await scenario.submit(1)
        await scenario.advance_time(4 * SECOND)
        await scenario.passes(1)
        await scenario.submit(2, 3)
        await scenario.advance_time(10 * MINUTE)
        view = await scenario.view(3)
        assert view.estimated_merge_at is not None
        text = format_time_until(view.estimated_merge_at, scenario.clock.now())
        page = await visitor.get("/pulls/git.local/acme/app/3")
        assert page.one(".where").text == f"Position 2 · {text} · 1 ahead"
        assert f"Expected to merge in {text}" in page.one("p.expected").text
        assert f"Position 2, {text}" in (await visitor.get("/pulls")).text
        queue_page = await visitor.get(HERE)
        (row,) = [each for each in queue_page.all("li") if each.all(".eta") and each.all(".nth")]
        assert row.one(".eta").text == text
        first = await scenario.view(2)
        assert first.estimated_merge_at is not None
        assert figures(queue_page)["Next merge"] == (
            f"{format_time_until(first.estimated_merge_at, scenario.clock.now())} running longer than usual"
        )
        queue = await scenario.service.queues.read(KEY)
        assert [each.estimated_merge_at for each in queue.submissions] == [
            first.estimated_merge_at,
            view.estimated_merge_at,
        ]
        assert queue.next_merge is not None
        assert queue.next_merge.at == first.estimated_merge_at
        await scenario.update(state=QueueState.PAUSED)
        why = "the queue is paused"
        page = await visitor.get("/pulls/git.local/acme/app/3")
        assert page.one("p.expected").text == f"No estimate: {why}"
        assert page.one(".where").text == "Position 2 · 1 ahead"
        assert "Position 2, no estimate" in (await visitor.get("/pulls")).text
        assert figures(await visitor.get(HERE))["Next merge"] == why
        assert (await scenario.view(3)).estimate_note == why


@asynchronous
async def test_queue_without_required_checks_says_that_nothing_can_merge(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        assert not (await visitor.get(HERE)).all(".alarm")
        await scenario.update(required_statuses=())
        signal = (await visitor.get(HERE)).one(".signal")
        assert signal.one(".alarm").text == "No required checks: nothing can merge."
        assert "Pull requests wait until a check is configured." in signal.text
        assert "/settings/git.local/acme/app:main" in [link["href"] for link in signal.all("a")]
        assert "RUNNING" not in signal.classes


@asynchronous
async def test_ready_pr_submitted_to_a_paused_queue_waits(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1, 2)
        scenario.set_pull_request(2, draft=True)
        await scenario.update(state=QueueState.PAUSED)
        await scenario.submit(1, 2)
        page = await visitor.get(HERE)
        assert (rows_of(page, "waiting"), rows_of(page, "not-ready")) == (["#1"], ["#2"])
        assert (figures(page)["Waiting"], figures(page)["Not ready"]) == ("1", "1")
        assert page.all(".why")[0].text.startswith("Waiting (queue paused).")


@asynchronous
async def test_reason_of_a_pause_or_drain_is_shown_with_the_actor(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        for state, label in ((QueueState.PAUSED, "Paused"), (QueueState.DRAINING, "Draining")):
            await scenario.service.queues.update(KEY, {}, state, "ada", lambda _: b"", None, "Release <freeze>")
            await scenario.wait_until_idle()
            signal = (await visitor.get(HERE)).one(".signal")
            assert signal.text.startswith(f"{label} just now by ada: Release <freeze>")


@asynchronous
async def test_problem_that_is_found_while_the_queue_is_paused_is_shown_as_one(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        await scenario.service.queues.update(KEY, {}, QueueState.PAUSED, "ada", lambda _: b"", None, "Release freeze")
        await scenario.advance_time(10 * SECOND)
        mismatch = Mismatch(
            kind=MismatchKind.MISSING, commit=None, number=PullRequestNumber(1), message="Commit c1 of #1 is missing."
        )
        await scenario.queue_actor.submit(AuditMismatchFound(mismatches=(mismatch,)))
        signal = (await visitor.get(HERE)).one(".signal")
        assert "ago by ada. just now by mergeyard: Commit c1 of #1 is missing." in signal.text
        assert signal.one(".alarm").text


@asynchronous
async def test_queue_that_only_bisects_does_not_say_that_nothing_is_tested(tmp_path: Path):
    async with (
        a_scenario(tmp_path, Config(batch=True, batching_min_size=2)) as scenario,
        a_signed_in_client(scenario) as visitor,
    ):
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        await scenario.fails(1, 2)
        await scenario.passes()
        page = await visitor.get(HERE)
        assert "Nothing is being tested" not in page.text
        assert "No active batches" in page.text
        assert (figures(page)["Running tests"], figures(page)["Next merge"]) == (
            "0 of 5, and 1 bisecting",
            "the queue has not confirmed which pull request is the culprit",
        )
        assert "Bisecting a failed batch" in (await visitor.get("/")).text
        bisection = scenario.queue_actor.queue.bisections[0].id
        assert page.one(f"#bisection-{bisection}").one("h3").text == "Bisecting a failed batch"


@asynchronous
async def test_priorities_are_named_in_lists_and_on_wagons(tmp_path: Path):
    async with a_scenario(tmp_path, Config(concurrency=1)) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1, 2, 3)
        await scenario.submit(1, priority=10)
        await scenario.submit(2, priority=200)
        await scenario.submit(3, priority=201)
        page = await visitor.get(HERE)
        assert page.one("article.wagon").one(".tag").text == "high priority"
        assert [tag.text for tag in page.all(".tag")] == ["high priority", "low priority", "priority 201"]


@asynchronous
async def test_waiting_prs_are_listed_in_order_with_the_reason(tmp_path: Path):
    async with a_scenario(tmp_path, Config(concurrency=1)) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1, 2, 3, 4)
        scenario.set_pull_request(4, draft=True)
        await scenario.submit(1, 2, 3, 4)
        await scenario.submit(3, priority=10)
        page = await visitor.get(HERE)
        rows = [row for row in page.all("li") if row.all(".why")]
        assert [row.one(".what").one("b").text for row in rows] == ["#3", "#2", "#4"]
        assert [row.one(".nth").text for row in rows] == ["2", "3", ""]
        assert rows[2].one(".why").text == "The pull request is a draft. Mark it as ready."


@asynchronous
async def test_finished_prs_are_listed_latest_first_with_their_outcome(tmp_path: Path):
    seldom = ScenarioSetup(poll_interval_ms=60 * MINUTE)
    async with a_scenario(tmp_path, setup=seldom) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1, 2)
        await scenario.submit(1)
        run = scenario.run_of(1)
        await scenario.advance_time(3 * MINUTE)
        await scenario.passes(1)
        await scenario.advance_time(MINUTE)
        await scenario.submit(2)
        await scenario.cancel(2)
        rows = (await visitor.get(HERE)).one("ol.ended").all("li")
        assert [row.one(".state").text for row in rows] == ["Removed", "Merged"]
        assert [row["data-moves"] for row in rows] == ["pr-2", "pr-1"]
        commit = scenario.origin.tip("main")[:8]
        assert rows[1].one(".why").text == f"commit {commit} run {run.id[:8]} 3 min in the queue"
        assert [link["href"] for link in rows[1].one(".why").all("a")] == [f"/runs/{run.id}"]
        assert rows[0].one(".why").text.startswith("ada removed the pull request from the queue.")


@asynchronous
async def test_finished_prs_are_ordered_by_their_end_and_not_by_their_submission(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1, 2)
        for number in (1, 2):
            scenario.set_pull_request(number, draft=True)
        await scenario.submit(1)
        for _ in range(MAX_ROWS):
            await scenario.submit(2)
            await scenario.cancel(2)
        await scenario.cancel(1)
        first, *others = (await visitor.get(HERE)).one("ol.ended").all("li")
        assert (first["data-moves"], len(others)) == ("pr-1", MAX_ROWS - 1)


@asynchronous
async def test_resubmitted_pr_has_one_animated_element(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1)
        for _ in range(2):
            await scenario.submit(1)
            await scenario.cancel(1)
        await scenario.submit(1)
        assert animated_ids(await visitor.get(HERE)).count("pr-1") == 1


@asynchronous
async def test_a_paused_queue_says_what_that_means_and_who_did_it(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        await scenario.update(state=QueueState.PAUSED, concurrency=6)
        await scenario.advance_time(7 * SECOND)
        await scenario.update(concurrency=7)
        signal = (await visitor.get(HERE)).one(".signal")
        assert signal.text.startswith("Paused 7 s ago by ada. Nothing is admitted, started or merged.")
        assert figures(await visitor.get(HERE))["Next merge"] == "the queue is paused"


@asynchronous
async def test_texts_from_outside_are_escaped(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        scenario.open(1, 2)
        for number in (1, 2):
            scenario.set_pull_request(number, title=HOSTILE, author=HOSTILE, draft=number == 2)
        await scenario.submit(1, 2)
        page = await visitor.get(HERE)
        assert page.html.count("&lt;img src=x onerror=alert(1)&gt;") >= 4
        assert not page.all("[onerror]")
        assert all(HOSTILE.strip() in bdi.text for bdi in page.one("li.car").all("bdi"))


@asynchronous
async def test_reader_sees_no_buttons(tmp_path: Path):
    async with (
        a_scenario(tmp_path) as scenario,
        a_signed_in_client(scenario) as reader,
        a_signed_in_client(scenario, Scope.ADMIN) as admin,
    ):
        scenario.open(1)
        await scenario.submit(1)
        read, governed = await reader.get(HERE), await admin.get(HERE)
        assert not read.one("main").all("form")
        assert not read.all("a.more")
        assert not read.all("[data-action]")
        assert [link["data-action"] for link in governed.all("[data-action]")] == ["submit", "drain", "pause"]


@asynchronous
async def test_queue_outside_the_repositories_of_the_token_does_not_exist(tmp_path: Path):
    elsewhere = (Repo("git.local", "acme", "other"),)
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, repos=elsewhere) as visitor:
        hidden, missing = await visitor.get(HERE), await visitor.get("/queues/git.local/acme/none:main")
        assert (hidden.status, missing.status) == (404, 404)
        assert hidden.one("h1").text == missing.one("h1").text == "Not found"


@asynchronous
async def test_cost_of_the_page_does_not_grow_with_the_number_of_waiting_prs(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario) as visitor:
        crowd = a_plain_queue(*(a_submission(number) for number in range(1, 10_001)))
        scenario.queue_actor.queue = replace(crowd, id=scenario.queue_actor.id)
        page, costs = await visitor.get(HERE), list[float]()
        for _ in range(5):
            begun = process_time()
            page = await visitor.get(HERE)
            costs.append(process_time() - begun)
        assert min(costs) < 0.1, "the other costs can contain a garbage collection of the test process"
        (link,) = [link for link in page.all("a") if link.text == "Show all 10,000"]
        assert link["href"] == "/pulls?queue=git.local/acme/app:main&state=waiting"
        assert len(page.all("a.more")) == 0


@asynchronous
async def test_rule_that_refuses_the_push_is_shown_as_a_danger_warning_without_waiting_for_the_host(tmp_path: Path):
    async with a_forge_scenario(tmp_path, GithubDriver) as scenario, a_signed_in_client(scenario) as visitor:
        repository = cast(GithubDriver, scenario.forge).acme
        repository.rulesets["main"] = REVIEWS
        assert not (await visitor.get(HERE)).all(".alarm")
        await scenario.wait_until_idle()
        warning = (await visitor.get(HERE)).one(".alarm")
        assert 'The ruleset "reviews and checks" refuses the queue\'s push to main' in warning.text
        asked = scenario.api_call_count()
        await visitor.get(HERE)
        await scenario.wait_until_idle()
        assert scenario.api_call_count() == asked
        repository.rulesets["main"] = replace(REVIEWS, bypass={BOT: "always"})
        await scenario.advance_time(WARNINGS_REFRESH_AFTER_MS)
        await visitor.get(HERE)
        await scenario.wait_until_idle()
        assert not (await visitor.get(HERE)).all(".alarm")


@asynchronous
async def test_warning_is_read_again_when_the_landing_method_changes(tmp_path: Path):
    async with a_forge_scenario(tmp_path, GithubDriver) as scenario, a_signed_in_client(scenario) as visitor:
        cast(GithubDriver, scenario.forge).acme.rulesets["main"] = REVIEWS
        for landing, is_refused in ((LandingMethod.TESTED_COMMIT, True), (LandingMethod.PROVIDER_MERGE, False)) * 2:
            await scenario.update(landing=landing)
            assert not (await visitor.get(HERE)).all(".alarm")
            await scenario.wait_until_idle()
            assert bool((await visitor.get(HERE)).all(".alarm")) is is_refused


@asynchronous
async def test_warning_is_kept_while_the_host_does_not_answer(tmp_path: Path):
    async with a_forge_scenario(tmp_path, GithubDriver) as scenario, a_signed_in_client(scenario) as visitor:
        cast(GithubDriver, scenario.forge).acme.rulesets["main"] = REVIEWS
        await visitor.get(HERE)
        await scenario.wait_until_idle()
        scenario.fail_all_requests()
        await scenario.advance_time(WARNINGS_REFRESH_AFTER_MS)
        await visitor.get(HERE)
        await scenario.wait_until_idle()
        unreachable, warning = (await visitor.get(HERE)).one(".signal").all(".alarm")
        assert unreachable.text.startswith("The queue has not reached the repository at ")
        assert "ruleset" in warning.text
