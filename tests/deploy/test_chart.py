"""The chart holds together: values, schema, templates and the server say the same."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import jsonschema_rs
import pytest

from mergeyard import __version__
from mergeyard.cli.server import SECONDS_TO_FINISH
from mergeyard.settings import Settings, load
from tests.deploy.files import CHART, CHART_TEXT, TEMPLATES, Table, read_json, read_yaml
from tests.support.door import get

VALUES: Table = read_yaml(CHART / "values.yaml")
SCHEMA: Table = read_json(CHART / "values.schema.json")
EVERY_VALUE: Table = read_yaml(Path(__file__).with_name("every_value.yml"))
PARTS = ("api", "worker")

every_template = pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)


def leaves(table: Table, above: str = "") -> Iterator[str]:
    for name, value in table.items():
        if isinstance(value, dict) and value:
            yield from leaves(cast(Table, value), f"{above}{name}.")
        else:
            yield above + name


def used() -> set[str]:
    """The values that templates ask for; what they ask of a part they ask of both."""
    named = set(re.findall(r"\.Values\.([\w.]+)", CHART_TEXT)) - set(PARTS)
    of_parts = re.findall(r"\.part\.(\w+)", CHART_TEXT)
    return named | {f"{part}.{name}" for part in PARTS for name in of_parts}


def properties(schema: Table) -> Iterator[tuple[str, Table]]:
    """Every named property of the schema, with the path to it."""
    if "$ref" in schema:
        schema = SCHEMA["definitions"][schema["$ref"].rpartition("/")[2]]
    for name, below in schema.get("properties", {}).items():
        yield name, below
        yield from ((f"{name}.{path}", further) for path, further in properties(below))


# Values


def test_every_value_that_a_template_uses_has_a_default():
    assert [name for name in used() if not any(f"{leaf}.".startswith(f"{name}.") for leaf in leaves(VALUES))] == []


def test_every_default_is_used_by_a_template():
    assert [leaf for leaf in leaves(VALUES) if not any(f"{leaf}.".startswith(f"{name}.") for name in used())] == []


def test_the_defaults_and_all_values_at_once_fit_the_schema():
    jsonschema_rs.meta.validate(SCHEMA)
    jsonschema_rs.validate(SCHEMA, VALUES)
    jsonschema_rs.validate(SCHEMA, VALUES | EVERY_VALUE | {part: VALUES[part] | EVERY_VALUE[part] for part in PARTS})


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
def test_a_wrong_value_is_refused(wrong: Table):
    assert not jsonschema_rs.is_valid(SCHEMA, VALUES | wrong)


def test_log_levels_are_those_of_the_server():
    for level in SCHEMA["properties"]["logLevel"]["enum"]:
        load(None, {"MERGEYARD_LOG_LEVEL": level}, {})


def test_the_default_configuration_is_one_that_the_server_takes(tmp_path: Path):
    assert f'root = "{VALUES["repositories"]["mountPath"]}"' in VALUES["config"]
    (tmp_path / "mergeyard.toml").write_text(VALUES["config"].replace("/srv/git", str(tmp_path)))
    assert load(tmp_path / "mergeyard.toml", {}, {}).hosts.keys() == {"git.local"}


# Templates


@every_template
def test_whatever_a_template_opens_it_closes(template: Path):
    text = re.sub(r"\{\{/\*.*?\*/\}\}", "", template.read_text(), flags=re.DOTALL)
    opened = re.findall(r"\{\{-? *(?:if|with|range|define) ", text)
    assert len(opened) == len(re.findall(r"\{\{-? *end *-?\}\}", text))
    assert text.count("{{") == text.count("}}")


def test_every_piece_that_is_included_is_defined_and_the_other_way_round():
    defined = re.findall(r'define "([\w.]+)"', CHART_TEXT)
    assert len(defined) == len(set(defined))
    assert set(re.findall(r'include "([\w.]+)"', CHART_TEXT)) == set(defined)


def test_probes_ask_what_the_server_answers():
    paths = re.findall(r"httpGet: \{ path: (\S+), port: http \}", CHART_TEXT)
    assert paths == ["/healthz", "/healthz", "/readyz"]
    assert {get(path).status_code for path in paths} == {200}


def test_everybody_means_the_same_port():
    assert re.findall(r"containerPort: (\d+)", CHART_TEXT) == [str(Settings().port)]
    assert set(re.findall(r"targetPort: (\S+)", CHART_TEXT)) == {"http"}
    assert set(re.findall(r"- port: (\S+)\n", CHART_TEXT)) == {"http"}


def test_pods_have_no_rights_that_they_do_not_need():
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


def test_a_pod_is_given_more_time_to_end_than_it_takes():
    (whole,) = re.findall(r"terminationGracePeriodSeconds: (\d+)", CHART_TEXT)
    (before,) = re.findall(r'command: \["sleep", "(\d+)"\]', CHART_TEXT)
    assert int(whole) >= int(before) + SECONDS_TO_FINISH + 10


def test_the_database_is_known_only_by_the_name_of_a_secret():
    assert VALUES["database"]["existingSecret"] == ""
    assert re.findall(r"kind: Secret\b", CHART_TEXT) == []
    assert "valueFrom:\n      secretKeyRef:" in CHART_TEXT


def test_the_chart_is_of_this_version():
    assert read_yaml(CHART / "Chart.yaml")["appVersion"] == __version__
