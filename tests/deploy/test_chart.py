"""The chart is consistent: values, schema, templates and the server agree."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import jsonschema_rs
import pytest

from mergeyard import __version__
from mergeyard.cli.server import SHUTDOWN_TIMEOUT_S
from mergeyard.settings import Settings, load
from tests.deploy.files import CHART, CHART_TEXT, TEMPLATES, Table, read_json, read_yaml
from tests.support.fake_api import send_get

VALUES: Table = read_yaml(CHART / "values.yaml")
SCHEMA: Table = read_json(CHART / "values.schema.json")
ALL_VALUES: Table = read_yaml(Path(__file__).with_name("every_value.yml"))
COMPONENTS = ("api", "worker")

each_template = pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)


def leaves(table: Table, prefix: str = "") -> Iterator[str]:
    for name, value in table.items():
        if isinstance(value, dict) and value:
            yield from leaves(cast(Table, value), f"{prefix}{name}.")
        else:
            yield prefix + name


def used_values() -> set[str]:
    """The values that templates use; `.part` is the api in one place and the worker in another."""
    named = set(re.findall(r"\.Values\.([\w.]+)", CHART_TEXT)) - set(COMPONENTS)
    of_components = re.findall(r"\.part\.(\w+)", CHART_TEXT)
    return named | {f"{component}.{name}" for component in COMPONENTS for name in of_components}


def properties(schema: Table) -> Iterator[tuple[str, Table]]:
    """Every named property of the schema, with the path to it."""
    if "$ref" in schema:
        schema = SCHEMA["definitions"][schema["$ref"].rpartition("/")[2]]
    for name, below in schema.get("properties", {}).items():
        yield name, below
        yield from ((f"{name}.{path}", nested) for path, nested in properties(below))


# Values


def test_every_used_value_has_a_default():
    assert [
        name for name in used_values() if not any(f"{leaf}.".startswith(f"{name}.") for leaf in leaves(VALUES))
    ] == []


def test_every_default_is_used_by_a_template():
    assert [
        leaf for leaf in leaves(VALUES) if not any(f"{leaf}.".startswith(f"{name}.") for name in used_values())
    ] == []


def test_defaults_and_all_values_together_fit_the_schema():
    jsonschema_rs.meta.validate(SCHEMA)
    jsonschema_rs.validate(SCHEMA, VALUES)
    jsonschema_rs.validate(
        SCHEMA, VALUES | ALL_VALUES | {component: VALUES[component] | ALL_VALUES[component] for component in COMPONENTS}
    )


def test_every_property_of_the_schema_has_a_default():
    declared = set(leaves(VALUES))
    described = {path for path, below in properties(SCHEMA) if "properties" not in below and "$ref" not in below}
    assert {path for path in described if not any(f"{leaf}.".startswith(f"{path}.") for leaf in declared)} == {"global"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"replica": 3},
        {"image": {"repository": "mergeyard", "tag": "latest"}},
        {"api": VALUES["api"] | {"replicas": 0}},
        {"worker": VALUES["worker"] | {"dataSize": "plenty"}},
        {"logLevel": "loud"},
        {"publicUrl": "https://user:password@queue.example.com"},
    ],
    ids=str,
)
def test_wrong_value_is_refused(wrong: Table):
    assert not jsonschema_rs.is_valid(SCHEMA, VALUES | wrong)


def test_only_named_clients_reach_the_replicas():
    """`with` or `if` around `from` would let all peers through when the list is empty."""
    policy = (CHART / "templates" / "networkpolicy.yaml").read_text()
    ingress = policy.partition("ingress:\n")[2].partition("---")[0]
    clients = "{{- toYaml .Values.networkPolicy.clients | nindent 8 }}"
    assert ingress.startswith(f"    - ports:\n        - port: http\n      from:\n        {clients}\n")
    assert "{{- if not .Values.networkPolicy.clients }}\n{{- fail " in policy


def test_the_ingress_controller_is_trusted_with_the_address_of_the_client():
    assert re.findall(r"- name: MERGEYARD_TRUSTED_PROXIES\n +value: (.*)", CHART_TEXT) == [
        "{{ .root.Values.trustedProxies | quote }}"
    ]
    for values in (VALUES, ALL_VALUES):
        assert load(None, {"MERGEYARD_TRUSTED_PROXIES": values["trustedProxies"]}, {}).trusted_proxies


def test_log_levels_are_those_of_the_server():
    for level in SCHEMA["properties"]["logLevel"]["enum"]:
        load(None, {"MERGEYARD_LOG_LEVEL": level}, {})


def test_server_loads_the_default_configuration(tmp_path: Path):
    assert f'root = "{VALUES["repositories"]["mountPath"]}"' in VALUES["config"]
    (tmp_path / "mergeyard.toml").write_text(VALUES["config"].replace("/srv/git", str(tmp_path)))
    assert load(tmp_path / "mergeyard.toml", {}, {}).hosts.keys() == {"git.local"}


def test_pods_read_the_mounted_configuration():
    (folder,) = re.findall(r"name: config, mountPath: ([\w/]+)", CHART_TEXT)
    assert re.findall(r"- name: MERGEYARD_CONFIG\n +value: (\S+)", CHART_TEXT) == [f"{folder}/mergeyard.toml"]


# Templates


@each_template
def test_template_closes_every_block(template: Path):
    text = re.sub(r"\{\{/\*.*?\*/\}\}", "", template.read_text(), flags=re.DOTALL)
    opened = re.findall(r"\{\{-? *(?:if|with|range|define) ", text)
    assert len(opened) == len(re.findall(r"\{\{-? *end *-?\}\}", text))
    assert text.count("{{") == text.count("}}")


def test_every_included_template_is_defined_and_every_defined_one_is_included():
    defined = re.findall(r'define "([\w.]+)"', CHART_TEXT)
    assert len(defined) == len(set(defined))
    assert set(re.findall(r'include "([\w.]+)"', CHART_TEXT)) == set(defined)


def test_probes_use_paths_that_the_server_serves():
    paths = re.findall(r"httpGet: \{ path: (\S+), port: http \}", CHART_TEXT)
    assert paths == ["/healthz", "/healthz", "/readyz"]
    assert {send_get(path).status_code for path in paths} == {200}


def test_all_resources_use_the_same_port():
    assert re.findall(r"containerPort: (\d+)", CHART_TEXT) == [str(Settings().port)]
    assert set(re.findall(r"targetPort: (\S+)", CHART_TEXT)) == {"http"}
    assert set(re.findall(r"- port: (\S+)\n", CHART_TEXT)) == {"http"}


def test_pods_have_no_unneeded_privileges():
    replica = (CHART / "templates" / "_replica.tpl").read_text()
    for line in (
        "automountServiceAccountToken: false",
        "enableServiceLinks: false",
        "runAsNonRoot: true",
        "type: RuntimeDefault",
        "allowPrivilegeEscalation: false",
        "readOnlyRootFilesystem: true",
        "drop: [ALL]",
    ):
        assert replica.count(f"{line}\n") == 1, line


def test_termination_grace_period_covers_the_shutdown():
    (grace_period,) = re.findall(r"terminationGracePeriodSeconds: (\d+)", CHART_TEXT)
    (pre_stop,) = re.findall(r'command: \["sleep", "(\d+)"\]', CHART_TEXT)
    assert int(grace_period) >= int(pre_stop) + SHUTDOWN_TIMEOUT_S + 10


def test_database_is_configured_only_by_the_name_of_a_secret():
    assert VALUES["database"]["existingSecret"] == ""
    assert re.findall(r"kind: Secret\b", CHART_TEXT) == []
    assert "valueFrom:\n      secretKeyRef:" in CHART_TEXT


def test_chart_has_the_current_version():
    assert read_yaml(CHART / "Chart.yaml")["appVersion"] == __version__
