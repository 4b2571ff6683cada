"""Every alert is about a series that there is, says what is wrong, and leads to a runbook."""

import re
from pathlib import Path

import pytest

from tests.deploy.files import DEPLOY, OPERATIONS, Table, read_yaml
from tests.deploy.metrics import asked_for, known
from tests.support.door import get

RULES: Table = read_yaml(DEPLOY / "prometheus" / "rules.yml")
ALERTS: dict[str, Table] = {rule["alert"]: rule for group in RULES["groups"] for rule in group["rules"]}
REHEARSED = read_yaml(Path(__file__).with_name("alerts.yml"))
RUNBOOKS = re.findall(r"^### (Mergeyard\w+)$", OPERATIONS.read_text(), re.MULTILINE)

every_alert = pytest.mark.parametrize("name", ALERTS)


@every_alert
def test_an_alert_waits_before_it_rings_and_says_how_urgent_it_is(name: str):
    assert re.fullmatch(r"\d+[mh]", ALERTS[name]["for"])
    assert ALERTS[name]["labels"] in ({"severity": "critical"}, {"severity": "warning"})


@every_alert
def test_an_alert_says_what_is_wrong_in_whole_sentences(name: str):
    notes = ALERTS[name]["annotations"]
    assert notes.keys() == {"summary", "description", "runbook"}
    assert notes["summary"].endswith(".")
    assert notes["description"].endswith(".")


@every_alert
def test_an_alert_asks_only_for_series_that_are_explained(name: str):
    assert asked_for(ALERTS[name]["expr"])
    assert asked_for(ALERTS[name]["expr"]) - known() == set()


@every_alert
def test_an_alert_leads_to_its_runbook(name: str):
    assert ALERTS[name]["annotations"]["runbook"] == f"docs/operations.md#{name.lower()}"


def test_there_is_one_runbook_for_every_alert_in_their_order():
    assert list(ALERTS) == RUNBOOKS


def test_every_alert_is_rehearsed():
    samples = [
        sample for test in REHEARSED["tests"] for step in test["promql_expr_test"] for sample in step["exp_samples"]
    ]
    assert {name for sample in samples for name in re.findall(r'"(\w+)"', sample["labels"])} == set(ALERTS)


def test_what_is_scraped_is_there():
    jobs = read_yaml(DEPLOY / "prometheus" / "scrape.yml")["scrape_configs"]
    assert {get(job["metrics_path"]).status_code for job in jobs} == {200}
    assert all("x-api-token" in job["http_headers"] for job in jobs)
