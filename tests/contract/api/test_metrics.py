"""The queue metrics, read by a strict parser: every series exists even at zero, and labels leak nothing."""

from pathlib import Path

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from mergeyard.adapters.host_plain.host import PlainHost
from mergeyard.domain.access import Scope
from mergeyard.domain.ids import Repo
from mergeyard.ports.forge import ChecksFrom
from tests.contract.api.harness import QUEUE, REPOSITORY, ApiHarness, api_with_queue, api_without_queue, code_of
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


async def read(api: ApiHarness, query: str = "", token: str | None = None) -> dict[str, Metric]:
    response = await api.metrics(query, token=token)
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
async def test_every_series_exists_for_runs_and_bisections_even_at_zero(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        families = await read(api)
        assert {name for name, family in families.items() if family.type == "gauge"} >= GAUGES
        assert {name for name, family in families.items() if family.type == "histogram"} >= HISTOGRAMS
        for name in GAUGES | HISTOGRAMS:
            for sample in families[name].samples:
                assert sample.labels.keys() - LABELS <= {"conclusion", "le"}
                labels = [sample.labels[label] for label in ("repo", "host", "branch")]
                assert (labels, sample.value) == (["acme/app", "git.local", "main"], 0)
            assert {sample.labels["queue_type"] for sample in families[name].samples} == {"main", "bisection"}
        for conclusion in ("merged", "failed", "cancelled"):
            assert value(families, "mq_pr_conclusions_1h_total", conclusion=conclusion) == 0
        for name in HISTOGRAMS:
            bounds = [each.labels["le"] for each in families[name].samples if each.name.endswith("_bucket")]
            assert bounds == BUCKETS * 2


@asynchronous
async def test_metrics_cover_the_last_hour(tmp_path: Path):
    async with api_with_queue(tmp_path, concurrency=2) as api:
        api.world.open(1, 2, 3, 4, 5)
        api.world.set_pull_request(5, draft=True)
        await api.submit(1, 2, 3, 4, 5)
        families = await read(api)
        assert value(families, "mq_depth_current") == 4
        assert value(families, "mq_awaiting_mergeability") == 1
        assert value(families, "mq_testing_slots_active") == 2
        await api.advance(5 * MINUTE)
        await api.ask("restartTestsOnPullRequest", pr={"number": 1})
        await api.passes(1)
        await api.fails(2)
        await api.ask("cancelPullRequest", pr={"number": 4})
        families = await read(api)
        for conclusion in ("merged", "failed", "cancelled"):
            assert value(families, "mq_pr_conclusions_1h_total", conclusion=conclusion) == 1
        assert value(families, "mq_pr_restarts_1h_total") >= 1
        time_in_queue = "mq_pr_time_in_queue_1h_seconds"
        assert (value(families, time_in_queue, "_count"), value(families, time_in_queue, "_sum")) == (3, 900)
        assert (
            value(families, time_in_queue, "_bucket", le="60"),
            value(families, time_in_queue, "_bucket", le="300"),
        ) == (0, 3)
        waits = "mq_pr_wait_duration_1h_seconds"
        assert value(families, waits, "_bucket", le="60") == 2
        assert value(families, waits, "_count") == 4
        await api.advance(61 * MINUTE)
        assert value(await read(api), time_in_queue, "_count") == 0


@asynchronous
async def test_a_bisection_has_its_own_metrics(tmp_path: Path):
    async with api_with_queue(tmp_path, batch=True, batchingMinSize=2) as api:
        api.world.open(1, 2)
        await api.submit(1, 2)
        await api.fails(1, 2)
        while not (await api.run(1))["isBisection"]:
            await api.passes()
        families = await read(api)
        assert value(families, "mq_depth_current") == 0
        assert value(families, "mq_depth_current", queue_type="bisection") == 2


@asynchronous
async def test_a_branch_with_quotes_is_escaped_and_comes_back(tmp_path: Path):
    async with api_without_queue(tmp_path) as api:
        branch = "a\"b}é{#,='x"
        api.world.origin.branch(branch, base="main")
        created = await api.ask("createQueue", targetBranch=branch)
        assert created["branch"] == branch
        families = await read(api)
        assert {sample.labels["branch"] for sample in families["mq_depth_current"].samples} == {branch}


@asynchronous
async def test_metrics_cover_one_repository_or_all_that_the_token_can_see(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        Origin.create(tmp_path / "repos" / "acme" / "other.git").commit("main", {"a": "1"})
        await api.ask("createQueue", **QUEUE | {"repo": REPOSITORY | {"name": "other"}})
        limited = await api.token(Scope.READ, repos=[Repo("git.local", "acme", "other")])

        async def repos(query: str = "", token: str | None = None) -> set[str]:
            families = await read(api, query, token)
            return {sample.labels["repo"] for sample in families["mq_depth_current"].samples}

        assert await repos() == {"acme/app", "acme/other"}
        assert await repos("?repoHost=GIT.local&repo=acme/app") == {"acme/app"}
        assert await repos("?repoHost=git.local&repo=acme%2Fother&more=1") == {"acme/other"}
        assert await repos(token=limited) == {"acme/other"}
        hidden = await api.metrics("?repoHost=git.local&repo=acme/app", token=limited)
        assert code_of(hidden) == "queue_not_found"


@asynchronous
async def test_metrics_cover_one_host(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        folder = tmp_path / "elsewhere"
        Origin.create(folder / "acme" / "app.git").commit("main", {"a": "1"})
        repositories = api.world.service.repositories
        others = {name: PlainHost(name, folder, ChecksFrom.API) for name in ("other.local", "empty.local")}
        repositories.hosts = {**repositories.hosts, **others}
        await api.ask("createQueue", repo=REPOSITORY | {"host": "other.local"})

        async def hosts(query: str) -> set[str]:
            return {sample.labels["host"] for sample in (await read(api, query))["mq_depth_current"].samples}

        assert await hosts("") == {"git.local", "other.local"}
        assert await hosts("?repoHost=GIT.local") == {"git.local"}
        assert await hosts("?repoHost=other.local") == {"other.local"}
        assert await hosts("?repoHost=empty.local") == set()
        limited = await api.token(Scope.READ, repos=[Repo("git.local", "acme", "app")])
        assert code_of(await api.metrics("?repoHost=other.local", token=limited)) == "host_not_allowed"


@asynchronous
async def test_an_invalid_query_is_refused(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        for query in (
            "?repo=acme/app", "?repoHost=", "?repoHost=git.local&repoHost=git.local", "?repo=app&repoHost=git.local",
            "?repo=&repoHost=git.local",
            "?repo=acme/app&repoHost=", "?repo=acme/app&repo=acme/app&repoHost=git.local", "?repo=a/-b/c&repoHost=x",
            "?repo=acme/app&repoHost=git.local&repoHost=git.local", "?repo=acme/%ff&repoHost=git.local",
            "?repo=../..&repoHost=git.local",
        ):  # fmt: skip
            assert code_of(await api.metrics(query)) == "invalid_request", query
        nowhere = await api.metrics("?repo=acme/nothing&repoHost=git.local")
        assert code_of(nowhere) == "queue_not_found"
        for query in ("?repoHost=elsewhere.example", "?repo=acme/app&repoHost=elsewhere.example"):
            assert code_of(await api.metrics(query)) == "host_not_allowed"


@asynchronous
async def test_metrics_without_any_queue_are_no_error(tmp_path: Path):
    async with api_without_queue(tmp_path) as api:
        for family in (await read(api)).values():
            assert family.samples == []
