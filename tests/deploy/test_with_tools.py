"""Whatever tool of the trade is installed here is content with the files; without any, the other tests stand alone."""

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.deploy.files import CHART, DEPLOY, ROOT, UNIT, Table

HERE = Path(__file__).parent
EVERY_VALUE = str(HERE / "every_value.yml")
NEEDED = ("--set", "database.existingSecret=database", "--set", "publicUrl=https://queue.example.com")
KUBERNETES = ("--kube-version", "1.33.0")


def run(tool: str, *arguments: str, **variables: str) -> str:
    found = shutil.which(tool)
    if found is None:
        pytest.skip(f"{tool} is not installed")
    done = subprocess.run([found, *arguments], capture_output=True, text=True, env=variables or None, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def rendered(*arguments: str) -> list[Table]:
    text = run("helm", "template", "mergeyard", str(CHART), *KUBERNETES, *arguments)
    return [document for document in yaml.safe_load_all(text) if document]


def kinds(documents: list[Table]) -> set[str]:
    return {document["kind"] for document in documents}


def test_helm_finds_nothing_to_complain_about():
    run("helm", "lint", "--strict", str(CHART), *KUBERNETES, "--values", EVERY_VALUE)


def test_the_chart_needs_no_more_than_a_database_and_an_address():
    assert {"Deployment", "Service", "NetworkPolicy", "PodDisruptionBudget"} <= kinds(rendered(*NEEDED))


def test_with_every_value_every_template_shows_something():
    everything = kinds(rendered("--values", EVERY_VALUE))
    assert {"Ingress", "HorizontalPodAutoscaler", "ServiceMonitor", "ServiceAccount", "ConfigMap"} <= everything


def test_each_role_has_a_deployment_that_says_so():
    roles = {}
    for document in rendered(*NEEDED):
        if document["kind"] == "Deployment":
            (container,) = document["spec"]["template"]["spec"]["containers"]
            roles[document["metadata"]["name"]] = next(
                e["value"] for e in container["env"] if e["name"] == "MERGEYARD_ROLE"
            )
    assert roles == {"mergeyard-api": "api", "mergeyard-worker": "worker"}


def test_hadolint_finds_nothing_to_complain_about():
    run("hadolint", str(ROOT / "Dockerfile"))


def test_promtool_takes_the_rules_and_every_alert_rings_when_it_should():
    run("promtool", "check", "rules", str(DEPLOY / "prometheus" / "rules.yml"))
    run("promtool", "test", "rules", str(HERE / "alerts.yml"))


def test_caddy_takes_its_file():
    file = str(DEPLOY / "compose" / "Caddyfile")
    run("caddy", "validate", "--config", file, "--adapter", "caddyfile", PUBLIC_URL="http://localhost", HOME="/tmp")


def test_systemd_takes_the_unit(tmp_path: Path):
    unit = tmp_path / "mergeyard.service"
    unit.write_text(UNIT.replace("/opt/mergeyard/bin/mergeyard", "/bin/true"))
    run("systemd-analyze", "verify", str(unit))
