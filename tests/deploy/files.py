"""The deployment files, read once for all tests."""

import json
import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm" / "mergeyard"
TEMPLATES = sorted((CHART / "templates").iterdir())
DEPLOY_PAGE = ROOT / "docs" / "operate" / "deploy.md"
MONITORING_PAGE = ROOT / "docs" / "operate" / "monitoring.md"

DOCKERFILE = (ROOT / "Dockerfile").read_text()
COMPOSE = (ROOT / "compose.yaml").read_text()
CADDYFILE = (DEPLOY / "compose" / "Caddyfile").read_text()
UNIT = (DEPLOY / "systemd" / "mergeyard.service").read_text()
CHART_TEXT = "\n".join(template.read_text() for template in TEMPLATES)

PLAIN_YAML = [
    ROOT / "compose.yaml",
    *sorted((DEPLOY / "prometheus").iterdir()),
    CHART / "Chart.yaml",
    CHART / "values.yaml",
    Path(__file__).with_name("alerts.yml"),
    Path(__file__).with_name("every_value.yml"),
]
DEPLOYMENT_FILES = [
    ROOT / "Dockerfile",
    ROOT / "compose.yaml",
    DEPLOY_PAGE,
    MONITORING_PAGE,
    *sorted(path for path in DEPLOY.rglob("*") if path.is_file()),
]

Table = dict[str, Any]


class UniqueKeyLoader(yaml.SafeLoader):
    """Refuses duplicate keys. YAML silently takes the last one."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        names = [key.value for key, _ in node.value]
        assert len(names) == len(set(names)), f"duplicate key{node.start_mark}"
        return super().construct_mapping(node, deep)


def read_yaml(path: Path) -> Any:
    return yaml.load(path.read_text(), UniqueKeyLoader)


def read_json(path: Path) -> Any:
    return json.loads(path.read_text())


def instructions(name: str) -> list[str]:
    """The arguments of an instruction of the Dockerfile; continued lines are joined."""
    whole = re.sub(r"\\\n\s*", "", DOCKERFILE)
    return re.findall(rf"^{name} (.+)$", whole, re.MULTILINE)
