"""The reference pages list every command, client method, error code, event type and metric, and no others."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from msgspec import json
from prometheus_client.parser import text_string_to_metric_families
from typer.core import TyperGroup, TyperOption
from typer.main import get_group

from mergeyard.api import queues
from mergeyard.api.responses import ERROR_KINDS
from mergeyard.api.routes import TABLE
from mergeyard.cli import app
from mergeyard.cli.output import INTERRUPTED_EXIT_CODE, ExitCode
from mergeyard.client import Client
from mergeyard.client.transport import to_camel_case
from mergeyard.domain.ids import QueueKey, Repo
from mergeyard.domain.journal import JournalEntry
from mergeyard.domain.webhooks import EventType
from mergeyard.service.analytics import QueueMetrics
from mergeyard.service.errors import Code
from mergeyard.service.metrics import REGISTRY
from mergeyard.service.webhooks.delivery import SLACK_HEADLINES
from mergeyard.service.webhooks.events import WebhookEvent
from mergeyard.web.admin.audit_log import AuditRow
from tests.support.terminal import parse_command

DOCS = Path(__file__).parents[2] / "docs"
COMMAND_LINE = (DOCS / "reference/command-line.md").read_text()
CLIENT = (DOCS / "reference/client.md").read_text()


def command_lines() -> Iterator[str]:
    """Every command that can be called, with its group."""
    for name, command in get_group(app).commands.items():
        if isinstance(command, TyperGroup):
            yield from (f"mergeyard {name} {subcommand}" for subcommand in command.commands)
        else:
            yield f"mergeyard {name}"


def examples() -> Iterator[str]:
    """Every command in a block of shell commands, on all pages."""
    for page in (*DOCS.rglob("*.md"), DOCS.parent / "README.md"):
        for block in re.findall(r"^```(?:sh|console)?\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL):
            for line in block.replace("\\\n", " ").splitlines():
                command = line.removeprefix("$ ").removeprefix("if ").partition(";")[0].strip()
                if command.startswith("mergeyard "):
                    yield command


def test_page_lists_every_command_and_no_others():
    rows = re.findall(r"^\| (`mergeyard .+?`) \| .+\. \|$", COMMAND_LINE, re.MULTILINE)
    listed = [name for row in rows for name in re.findall(r"`(.+?)`", row)]
    assert sorted(listed) == sorted(command_lines())


@pytest.mark.parametrize("command", sorted(set(examples())))
def test_documented_commands_parse(command: str):
    parse_command(command)


def test_many_commands_are_documented():
    assert len(list(examples())) > 40


def test_page_lists_every_connection_option_with_its_variables():
    rows = re.findall(r"^\| `(--[\w-]+)` \| (.+?) \|", COMMAND_LINE, re.MULTILINE)
    described = {option: re.findall(r"MERGEYARD_\w+", variables) for option, variables in rows}
    options = {
        each.opts[0]: re.findall(r"MERGEYARD_\w+", each.help or "")
        for each in get_group(app).commands["status"].params
        if isinstance(each, TyperOption) and each.rich_help_panel == "Connection"
    }
    assert described == options


def test_page_lists_every_exit_code():
    rows = re.findall(r"^\| (\d+) \| .+\. \|$", COMMAND_LINE, re.MULTILINE)
    assert list(map(int, rows)) == [*ExitCode, INTERRUPTED_EXIT_CODE]


def test_client_page_lists_every_method_with_its_endpoint():
    """A method that the table leaves out has the name of its endpoint."""
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| `(\w+)`", CLIENT, re.MULTILINE)
    listed = {name: endpoint for names, endpoint in rows for name in re.findall(r"`(\w+)`", names)}
    calls = {name for name in dir(Client) if not name.startswith("_")} - {"close", "run_exchange", "wait", "events"}
    assert listed.keys() <= calls
    assert {listed.get(name) or to_camel_case(name) for name in calls} == TABLE.keys()
    assert all(f"`{name}`" in CLIENT for name in ("wait", "events"))


ERRORS = (Path(__file__).parents[2] / "docs" / "reference" / "errors.md").read_text()


def error_sections() -> list[tuple[str, str]]:
    """Every code on the page, with its description."""
    return re.findall(r"^### `(\w+)`\n\n(.*?)(?=\n\n#|\Z)", ERRORS, re.MULTILINE | re.DOTALL)


def statuses_above(code: Code) -> range:
    before = ERRORS[: ERRORS.index(f"### `{code}`")]
    heading = re.findall(r"^## (\d+)(?: (?:and|to) (\d+))?:", before, re.MULTILINE)[-1]
    return range(int(heading[0]), int(heading[1] or heading[0]) + 1)


def test_errors_page_describes_every_code_once_and_no_others():
    assert sorted(code for code, _ in error_sections()) == sorted(Code)


def test_every_error_code_has_a_paragraph():
    assert [code for code, text in error_sections() if len(text.split()) < 8] == []


def test_every_error_code_is_below_its_status():
    assert [code for code in Code if ERROR_KINDS[code].status not in statuses_above(code)] == []


def test_every_error_code_has_a_kind():
    assert set(ERROR_KINDS) == set(Code)


WEBHOOKS = (Path(__file__).parents[2] / "docs" / "reference" / "webhooks.md").read_text()


def webhook_table(heading: str) -> list[str]:
    (table,) = re.findall(rf"^\| {heading} \|.*\n\|[-|]+\n((?:\|.*\n)+)", WEBHOOKS, re.MULTILINE)
    return re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)


def test_webhooks_page_lists_every_event_type():
    assert webhook_table("type") == list(EventType)


def test_webhook_example_has_every_member_in_order():
    (text,) = re.findall(r"```json\n(.*?)```", WEBHOOKS, re.DOTALL)
    example = json.decode(text)
    assert list(example) == ["type", "timestamp", "data"]
    assert list(example["data"]) == list(WebhookEvent.__struct_fields__)


def test_every_event_type_has_a_slack_headline():
    assert SLACK_HEADLINES.keys() == {*EventType, "webhook.test"}


AUDIT = (Path(__file__).parents[2] / "docs" / "operate" / "audit-log.md").read_text()


def audit_table(heading: str) -> list[str]:
    """The names in the first column of the first table after this text."""
    rows = re.search(r"\n\|[^\n]+\n\|-[^\n]+\n((?:\|.+\n)+)", AUDIT[AUDIT.index(heading) :])
    assert rows is not None
    return [name for row in rows[1].splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1])]


def test_audit_page_describes_every_kind_of_entry():
    assert sorted(audit_table("## What is in it")) == sorted(kind.__name__ for kind in get_args(JournalEntry))


def test_audit_page_describes_every_column_in_order():
    assert audit_table("**Export**") == list(AuditRow.__struct_encode_fields__)


METRICS = (Path(__file__).parents[2] / "docs" / "reference" / "metrics.md").read_text()
EXPLAINED_METRICS = re.findall(r"^\| `(\w+)` \| (\w+) \|", METRICS, re.MULTILINE)


def test_metrics_page_explains_every_metric_of_a_queue():
    text = queues.format_metrics([QueueMetrics(QueueKey(Repo("host", "owner", "name"), "main"))]).decode()
    exported = {(family.name, family.type) for family in text_string_to_metric_families(text)}
    assert exported == {(name, kind) for name, kind in EXPLAINED_METRICS if name.startswith("mq_")}


def test_metrics_page_explains_every_metric_of_the_process():
    families = [family for family in REGISTRY.collect() if family.name.startswith("mergeyard_")]
    exported = {(family.name + ("_total" if family.type == "counter" else ""), family.type) for family in families}
    assert exported == {(name, kind) for name, kind in EXPLAINED_METRICS if name.startswith("mergeyard_")}
