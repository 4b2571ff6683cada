"""Alerts and the dashboard use only series that exist and are explained; every alert has a runbook."""

import re
import tomllib
from itertools import combinations
from pathlib import Path

import pytest

from mergeyard.service.metrics import REGISTRY
from tests.deploy.files import DEPLOY, MONITORING_PAGE, ROOT, Table, read_json, read_yaml
from tests.support.fake_api import send_get

METRICS_PAGE = (ROOT / "docs" / "reference" / "metrics.md").read_text()
EXPLAINED = dict(re.findall(r"^\| `(\w+)` \| (\w+) \|", METRICS_PAGE, re.MULTILINE))
HISTOGRAM_SUFFIXES = ("_bucket", "_count", "_sum")
CLIENT_SERIES = {sample.name for family in REGISTRY.collect() for sample in family.samples if "process" in sample.name}


def known_series() -> set[str]:
    histograms = {name for name, kind in EXPLAINED.items() if kind == "histogram"}
    parts = {name + suffix for name in histograms for suffix in HISTOGRAM_SUFFIXES}
    return EXPLAINED.keys() - histograms | parts | CLIENT_SERIES


def queried_series(query: str) -> set[str]:
    """Label names also occur in queries; none of ours starts like a series."""
    return set(re.findall(r"\b(?:mq|mergeyard|process)_\w+", query))


def explaining_rows(series: set[str]) -> set[str]:
    """The rows of the metrics page that explain these series."""
    return {
        name for name in EXPLAINED if name in series or any(name + suffix in series for suffix in HISTOGRAM_SUFFIXES)
    }


URLS: Table = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
RUNBOOK_URL = f"{URLS['Documentation']}/operate/monitoring.html"
RULES: Table = read_yaml(DEPLOY / "prometheus" / "rules.yml")
ALERTS: dict[str, Table] = {rule["alert"]: rule for group in RULES["groups"] for rule in group["rules"]}
ALERT_TESTS = read_yaml(Path(__file__).with_name("alerts.yml"))
RUNBOOKS = re.findall(r"^### (Mergeyard\w+)$", MONITORING_PAGE.read_text(), re.MULTILINE)

each_alert = pytest.mark.parametrize("name", ALERTS)


@each_alert
def test_alert_has_a_duration_and_a_severity(name: str):
    assert re.fullmatch(r"\d+[mh]", ALERTS[name]["for"])
    assert ALERTS[name]["labels"] in ({"severity": "critical"}, {"severity": "warning"})


@each_alert
def test_alert_describes_the_problem_in_sentences(name: str):
    notes = ALERTS[name]["annotations"]
    assert notes.keys() == {"summary", "description", "runbook_url"}
    assert notes["summary"].endswith(".")
    assert notes["description"].endswith(".")


@each_alert
def test_alert_describes_the_problem_and_then_what_to_do(name: str):
    assert len(re.findall(r"\.(?: |$)", ALERTS[name]["annotations"]["description"])) >= 2


@each_alert
def test_alert_queries_only_explained_series(name: str):
    assert queried_series(ALERTS[name]["expr"])
    assert queried_series(ALERTS[name]["expr"]) - known_series() == set()


@each_alert
def test_alert_links_to_its_runbook(name: str):
    assert ALERTS[name]["annotations"]["runbook_url"] == f"{RUNBOOK_URL}#{name.lower()}"


def test_every_alert_has_one_runbook_in_the_same_order():
    assert list(ALERTS) == RUNBOOKS


def test_every_alert_fires_in_a_rule_test():
    samples = [
        sample for test in ALERT_TESTS["tests"] for step in test["promql_expr_test"] for sample in step["exp_samples"]
    ]
    assert {name for sample in samples for name in re.findall(r'"(\w+)"', sample["labels"])} == set(ALERTS)


def test_scraped_paths_exist():
    jobs = read_yaml(DEPLOY / "prometheus" / "scrape.yml")["scrape_configs"]
    assert {send_get(job["metrics_path"]).status_code for job in jobs} == {200}
    assert all("x-api-token" in job["http_headers"] for job in jobs)


DASHBOARD: Table = read_json(DEPLOY / "grafana" / "mergeyard.json")
PANELS: list[Table] = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
QUERIES: list[str] = [target["expr"] for panel in PANELS for target in panel["targets"]]
QUERIED = set[str]().union(*map(queried_series, QUERIES))
OWN_VARIABLES = {variable["name"] for variable in DASHBOARD["templating"]["list"]}
GRAFANA_VARIABLES = {"__rate_interval"}

each_panel = pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])


def overlap(one: Table, other: Table) -> bool:
    side_by_side = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
    return not (side_by_side or one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"])


def test_dashboard_is_imported_as_a_new_one_with_its_own_name():
    assert (DASHBOARD["id"], DASHBOARD["uid"], DASHBOARD["title"]) == (None, "mergeyard", "Mergeyard")
    assert DASHBOARD["schemaVersion"] >= 41


def test_dashboard_shows_every_metric():
    assert explaining_rows(QUERIED) == EXPLAINED.keys()


def test_dashboard_queries_only_existing_series():
    assert QUERIED - known_series() == set()


def test_dashboard_defines_every_variable_that_it_uses():
    assert {name for query in QUERIES for name in re.findall(r"\$(\w+)", query)} <= OWN_VARIABLES | GRAFANA_VARIABLES


@each_panel
def test_panel_has_a_description_and_uses_the_selected_data_source(panel: Table):
    sources = [panel["datasource"], *(target["datasource"] for target in panel["targets"])]
    assert panel["description"].endswith(".")
    assert all(source == {"type": "prometheus", "uid": "${datasource}"} for source in sources)


def test_panels_have_unique_ids_and_do_not_overlap():
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    places = [panel["gridPos"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids))
    assert all(place["x"] + place["w"] <= 24 for place in places)
    assert [pair for pair in combinations(places, 2) if overlap(*pair)] == []
