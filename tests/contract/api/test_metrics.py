"""The metrics of queues, read by a strict parser: every series, also at zero, with nothing in its labels that leaks."""

from pathlib import Path

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from mergeyard.domain.repositories import Repo
from mergeyard.domain.tokens import Scope
from tests.contract.api.desk import QUEUE, REPOSITORY, Desk, a_desk, an_empty_desk, code_of
from tests.support.asynchronous import asynchronous
from tests.support.repositories import Origin
from tests.support.scenario import MINUTE

GAUGES = {
    "mq_depth_current", "mq_awaiting_mergeability", "mq_testing_slots_active", "mq_pr_conclusions_1h_total",
    "mq_pr_restarts_1h_total",
}  # fmt: skip
HISTOGRAMS = {
    "mq_pr_wait_duration_1h_seconds", "mq_pr_test_duration_1h_seconds", "mq_pr_time_in_queue_1h_seconds",
}  # fmt: skip
BUCKETS = ["60", "300", "600", "900", "1800", "3600", "5400", "7200", "+Inf"]
LABELS = {"repo", "host", "branch", "queue_type"}


async def read(desk: Desk, query: str = "", token: str | None = None) -> dict[str, Metric]:
    response = await desk.metrics(query, token=token)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return {family.name: family for family in text_string_to_metric_families(response.text)}


def value(families: dict[str, Metric], family: str, sample: str = "", **labels: str) -> float:
    wanted = {"queue_type": "main"} | labels
    found = [
        each.value
        for each in families[family].samples
        if each.name == family + sample and wanted.items() <= each.labels.items()
    ]
    assert len(found) == 1, found
    return found[0]


@asynchronous
async def test_every_series_is_there_for_both_tracks_also_at_zero(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        families = await read(desk)
        assert {name for name, family in families.items() if family.type == "gauge"} >= GAUGES
        assert {name for name, family in families.items() if family.type == "histogram"} >= HISTOGRAMS
        for name in GAUGES | HISTOGRAMS:
            for sample in families[name].samples:
                assert sample.labels.keys() - LABELS <= {"conclusion", "le"}
                place = [sample.labels[label] for label in ("repo", "host", "branch")]
                assert (place, sample.value) == (["acme/app", "git.local", "main"], 0)
            assert {sample.labels["queue_type"] for sample in families[name].samples} == {"main", "bisection"}
        for conclusion in ("merged", "failed", "cancelled"):
            assert value(families, "mq_pr_conclusions_1h_total", conclusion=conclusion) == 0
        for name in HISTOGRAMS:
            bounds = [each.labels["le"] for each in families[name].samples if each.name.endswith("_bucket")]
            assert bounds == BUCKETS * 2


@asynchronous
async def test_the_figures_say_what_happened_in_the_last_hour(tmp_path: Path):
    async with a_desk(tmp_path, concurrency=2) as desk:
        desk.world.open(1, 2, 3, 4, 5)
        desk.world.set_pull(5, draft=True)
        await desk.submit(1, 2, 3, 4, 5)
        families = await read(desk)
        assert value(families, "mq_depth_current") == 4
        assert value(families, "mq_awaiting_mergeability") == 1
        assert value(families, "mq_testing_slots_active") == 2
        await desk.let_pass(5 * MINUTE)
        await desk.ask("restartTestsOnPullRequest", pr={"number": 1})
        await desk.passes(1)
        await desk.fails(2)
        await desk.ask("cancelPullRequest", pr={"number": 4})
        families = await read(desk)
        for conclusion in ("merged", "failed", "cancelled"):
            assert value(families, "mq_pr_conclusions_1h_total", conclusion=conclusion) == 1
        assert value(families, "mq_pr_restarts_1h_total") >= 1
        stays = "mq_pr_time_in_queue_1h_seconds"
        assert (value(families, stays, "_count"), value(families, stays, "_sum")) == (3, 900)
        assert (value(families, stays, "_bucket", le="60"), value(families, stays, "_bucket", le="300")) == (0, 3)
        waits = "mq_pr_wait_duration_1h_seconds"
        assert value(families, waits, "_bucket", le="60") == 2
        assert value(families, waits, "_count") == 4
        await desk.let_pass(61 * MINUTE)
        assert value(await read(desk), stays, "_count") == 0


@asynchronous
async def test_a_bisection_has_figures_of_its_own(tmp_path: Path):
    async with a_desk(tmp_path, batch=True, batchingMinSize=2) as desk:
        desk.world.open(1, 2)
        await desk.submit(1, 2)
        await desk.fails(1, 2)
        while not (await desk.run(1))["isBisection"]:
            await desk.passes()
        families = await read(desk)
        assert value(families, "mq_depth_current") == 0
        assert value(families, "mq_depth_current", queue_type="bisection") == 2


@asynchronous
async def test_a_branch_with_quotes_is_escaped_and_comes_back(tmp_path: Path):
    async with an_empty_desk(tmp_path) as desk:
        branch = "a\"b}é{#,='x"
        desk.world.origin.branch(branch, upon="main")
        created = await desk.ask("createQueue", targetBranch=branch)
        assert created["branch"] == branch
        families = await read(desk)
        assert {sample.labels["branch"] for sample in families["mq_depth_current"].samples} == {branch}


@asynchronous
async def test_figures_are_of_one_repository_or_of_all_that_the_token_sees(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        Origin.made(tmp_path / "repos" / "acme" / "other.git").commit("main", {"a": "1"})
        await desk.ask("createQueue", **QUEUE | {"repo": REPOSITORY | {"name": "other"}})
        limited = await desk.token(Scope.READ, repos=[Repo("git.local", "acme", "other")])

        async def repos(query: str = "", token: str | None = None) -> set[str]:
            families = await read(desk, query, token)
            return {sample.labels["repo"] for sample in families["mq_depth_current"].samples}

        assert await repos() == {"acme/app", "acme/other"}
        assert await repos("?repoHost=GIT.local&repo=acme/app") == {"acme/app"}
        assert await repos("?repoHost=git.local&repo=acme%2Fother&more=1") == {"acme/other"}
        assert await repos(token=limited) == {"acme/other"}
        hidden = await desk.metrics("?repoHost=git.local&repo=acme/app", token=limited)
        assert code_of(hidden) == "queue_not_found"


@asynchronous
async def test_a_question_that_does_not_fit_is_refused(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        for query in (
            "?repo=acme/app", "?repoHost=git.local", "?repo=app&repoHost=git.local", "?repo=&repoHost=git.local",
            "?repo=acme/app&repoHost=", "?repo=acme/app&repo=acme/app&repoHost=git.local", "?repo=a/-b/c&repoHost=x",
            "?repo=acme/app&repoHost=git.local&repoHost=git.local", "?repo=acme/%ff&repoHost=git.local",
            "?repo=../..&repoHost=git.local",
        ):  # fmt: skip
            assert code_of(await desk.metrics(query)) == "invalid_request", query
        nowhere = await desk.metrics("?repo=acme/nothing&repoHost=git.local")
        assert code_of(nowhere) == "queue_not_found"


@asynchronous
async def test_no_queue_at_all_is_no_error(tmp_path: Path):
    async with an_empty_desk(tmp_path) as desk:
        for family in (await read(desk)).values():
            assert family.samples == []
