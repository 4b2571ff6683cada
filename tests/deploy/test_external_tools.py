"""External tools, where they are installed, accept the deployment files."""

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.deploy.files import CHART, DEPLOY, ROOT, UNIT, Table

HERE = Path(__file__).parent
ALL_VALUES = str(HERE / "every_value.yml")
REQUIRED_VALUES = (
    *("--set", "database.existingSecret=database"),
    *("--set", "publicUrl=https://queue.example.com"),
    *("--set-json", 'networkPolicy.clients=[{"namespaceSelector":{}}]'),
)
KUBERNETES_VERSION = ("--kube-version", "1.33.0")


def run(tool: str, *arguments: str, **variables: str) -> str:
    found = shutil.which(tool)
    if found is None:
        pytest.skip(f"{tool} is not installed: put it on PATH to check the files in deploy/ with it.")
    result = subprocess.run([found, *arguments], capture_output=True, text=True, env=variables or None, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def render_chart(*arguments: str) -> list[Table]:
    text = run("helm", "template", "mergeyard", str(CHART), *KUBERNETES_VERSION, *arguments)
    return [document for document in yaml.safe_load_all(text) if document]


def kinds(documents: list[Table]) -> set[str]:
    return {document["kind"] for document in documents}


def test_helm_lint_passes():
    run("helm", "lint", "--strict", str(CHART), *KUBERNETES_VERSION, "--values", ALL_VALUES)


def test_chart_requires_only_a_database_a_public_url_and_the_clients():
    assert {"Deployment", "Service", "NetworkPolicy", "PodDisruptionBudget"} <= kinds(render_chart(*REQUIRED_VALUES))


def test_every_template_renders_something_with_all_values():
    everything = kinds(render_chart("--values", ALL_VALUES))
    assert {"Ingress", "HorizontalPodAutoscaler", "ServiceMonitor", "ServiceAccount", "ConfigMap"} <= everything


def test_each_role_has_a_deployment():
    roles = {}
    for document in render_chart(*REQUIRED_VALUES):
        if document["kind"] == "Deployment":
            (container,) = document["spec"]["template"]["spec"]["containers"]
            roles[document["metadata"]["name"]] = next(
                e["value"] for e in container["env"] if e["name"] == "MERGEYARD_ROLE"
            )
    assert roles == {"mergeyard-api": "api", "mergeyard-worker": "worker"}


def test_hadolint_passes():
    run("hadolint", str(ROOT / "Dockerfile"))


def test_promtool_accepts_the_rules_and_every_alert_fires_when_it_should():
    run("promtool", "check", "rules", str(DEPLOY / "prometheus" / "rules.yml"))
    run("promtool", "test", "rules", str(HERE / "alerts.yml"))


def test_systemd_accepts_the_unit(tmp_path: Path):
    unit = tmp_path / "mergeyard.service"
    unit.write_text(UNIT.replace("/opt/mergeyard/bin/mergeyard", "/bin/true"))
    run("systemd-analyze", "verify", str(unit))
