"""The reference pages list every command, client method, error code, event type and metric, and no others."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from msgspec import json
from prometheus_client.parser import text_string_to_metric_families
from typer.core import TyperGroup
from typer.main import get_group
from typer.testing import CliRunner

from mergeyard.api import queues
from mergeyard.api.responses import ERROR_KINDS
from mergeyard.api.routes import TABLE
from mergeyard.cli import app
from mergeyard.cli.output import ExitCode
from mergeyard.client import Client
from mergeyard.domain.ids import QueueKey, Repo
from mergeyard.domain.journal import JournalEntry
from mergeyard.domain.webhooks import EventType
from mergeyard.service.analytics import QueueMetrics
from mergeyard.service.errors import Code
from mergeyard.service.metrics import REGISTRY
from mergeyard.service.webhooks.delivery import SLACK_HEADLINES
from mergeyard.service.webhooks.events import WebhookEvent
from mergeyard.web.admin.audit_log import AuditRow

DOCS = Path(__file__).parents[2] / "docs"
COMMAND_LINE = (DOCS / "reference/command-line.md").read_text()
CLIENT = (DOCS / "reference/client.md").read_text()
INTERRUPTED_EXIT_CODE = 130


def command_lines() -> Iterator[str]:
    """Every command that can be called, with its group."""
    for name, command in get_group(app).commands.items():
        if isinstance(command, TyperGroup):
            yield from (f"mergeyard {name} {subcommand}" for subcommand in command.commands)
        else:
            yield f"mergeyard {name}"


def examples() -> list[list[str]]:
    blocks = re.findall(r"^```sh\n(.*?)^```$", COMMAND_LINE, re.MULTILINE | re.DOTALL)
    lines = [line.removeprefix("if ").partition(";")[0] for block in blocks for line in block.splitlines()]
    return [shlex.split(line)[1:] for line in lines if line.startswith("mergeyard ")]


def test_page_lists_every_command_and_no_others():
    headings = re.findall(r"^### `(.+)`$", COMMAND_LINE, re.MULTILINE)
    in_tables = re.findall(r"`(mergeyard [^`]+)`(?=[,| ])", COMMAND_LINE.partition("## Running the service")[2])
    assert sorted([*headings, *in_tables]) == sorted(command_lines())


def test_examples_use_only_existing_options():
    assert len(examples()) > 25
    for words in examples():
        if "--install-completion" not in words:
            result = CliRunner().invoke(app, [*words, "--help"])
            assert result.exit_code == 0, (words, result.output)


def test_every_explained_command_has_an_example():
    for command in re.findall(r"^### `mergeyard (.+)`$", COMMAND_LINE, re.MULTILINE):
        assert any(words[: len(command.split())] == command.split() for words in examples()), command


def test_page_lists_every_exit_code():
    rows = re.findall(r"^\| (\d+) \| .+\. \|$", COMMAND_LINE, re.MULTILINE)
    assert list(map(int, rows)) == [*ExitCode, INTERRUPTED_EXIT_CODE]


def test_client_page_lists_every_method_with_its_endpoint():
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| `(\w+)`", CLIENT, re.MULTILINE)
    assert {endpoint for _, endpoint in rows} == TABLE.keys()
    listed = {name for names, _ in rows for name in re.findall(r"`(\w+)`", names)}
    calls = {name for name in dir(Client) if not name.startswith("_")} - {"close", "run_exchange"}
    assert listed | {"wait", "events"} == calls


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


def test_webhooks_page_lists_every_endpoint():
    assert sorted(webhook_table("endpoint")) == sorted(name for name in TABLE if "Webhook" in name)


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
