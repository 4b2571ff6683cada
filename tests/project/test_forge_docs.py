"""The pages about the forges, and the one about comments, match the code."""

import ast
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import fields
from typer.testing import CliRunner

from mergeyard.adapters import forges
from mergeyard.adapters.forges.gitea import diagnostics as gitea_diagnostics
from mergeyard.adapters.forges.gitea.host import GiteaHost
from mergeyard.adapters.forges.github.auth import EVENTS, REQUIRED_PERMISSIONS
from mergeyard.adapters.forges.github.host import GithubHost
from mergeyard.adapters.forges.gitlab import diagnostics as gitlab_diagnostics
from mergeyard.adapters.forges.gitlab.host import GitlabHost
from mergeyard.adapters.forges.http import ForgeConfig
from mergeyard.api.routes import TABLE
from mergeyard.cli import app
from mergeyard.domain import ids
from mergeyard.domain.config import LOWEST_PRIORITY, PRIORITIES, Config, LandingMethod, MergeMethod
from mergeyard.domain.pull_requests import StatusState
from mergeyard.domain.states import PullRequestState
from mergeyard.ports.forge import Host
from mergeyard.service.comments import texts
from mergeyard.service.comments.commands import COMMAND_PREFIXES, OTHER_VERBS, SUBMIT_OPTIONS
from mergeyard.settings import load, loading
from mergeyard.settings.parsing import SIMPLE_KEYS
from mergeyard.settings.schema import ForgeHost
from tests.support.clock import ManualClock

DOCS = Path(__file__).parents[2] / "docs"
COMMENTS = (DOCS / "developers/merge-your-pr.md").read_text()
ACCESS = ForgeConfig(
    name="forge.example.com", web_url="https://forge.example.com", api_url="https://forge.example.com/api"
)
HOSTS: dict[str, Host] = {
    "github": GithubHost(ACCESS, ManualClock()),
    "gitlab": GitlabHost(ACCESS, ManualClock()),
    "gitea": GiteaHost(ACCESS, ManualClock()),
}
FORGES = Path(forges.__file__).parent
FORGE_SETTINGS = {"allow_manual_merge"}
"""Names in messages that are settings of a forge."""
ONLY_FOR_APPS = {"app_id", "private_key_file"}

each_forge = pytest.mark.parametrize("forge", HOSTS)


def page(forge: str) -> str:
    return (DOCS / "start" / f"{forge}.md").read_text()


def rows(text: str, first_heading: str) -> list[list[str]]:
    """The cells of the table whose first heading is this one."""
    (table,) = re.findall(rf"^\| {re.escape(first_heading)} \|.*\n\|[-|]+\n((?:\|.*\n)+)", text, re.MULTILINE)
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in table.splitlines()]


def blocks(forge: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page(forge), re.MULTILINE | re.DOTALL)


def settings_file(forge: str) -> str:
    """As printed on the page, or as its shell commands would write it."""
    from_shell = re.findall(r"<<END\n(.*?)^END$", page(forge), re.MULTILINE | re.DOTALL)
    (text,) = [*blocks(forge, "toml"), *from_shell]
    return text.replace("$QUEUE", "https://queue.example.com").replace("$GITEA", "https://gitea.example.com")


# Forges


@each_forge
def test_settings_file_of_the_page_loads(forge: str, tmp_path: Path):
    table: dict[str, Any]
    ((name, table),) = tomllib.loads(settings_file(forge))["hosts"].items()
    (tmp_path / "secrets").mkdir()
    for key in loading.FORGE_KEYS:
        if key.endswith("_file") and key in table:
            (tmp_path / table[key]).write_text("hush")
    (tmp_path / "mergeyard.toml").write_text(settings_file(forge))
    host = load(tmp_path / "mergeyard.toml", {}, {}).hosts[name]
    assert isinstance(host, ForgeHost)
    assert (host.provider, host.webhook_secret) == (forge, "hush")


@each_forge
def test_page_names_every_key_of_this_forge(forge: str):
    known = set(loading.FORGE_KEYS) - (set() if forge == "github" else ONLY_FOR_APPS)
    assert {key for key in known if not re.search(rf"\b{key}\b", page(forge))} == set()


@each_forge
def test_webhook_address_of_the_page_is_served(forge: str):
    ((name, _),) = tomllib.loads(settings_file(forge))["hosts"].items()
    addresses = re.findall(r"/hooks/\w+/[\w.]+\w", page(forge))
    assert set(addresses) == {f"/hooks/{forge}/{name}"}


@each_forge
def test_page_shows_which_merge_methods_work_on_this_forge(forge: str):
    landing_methods = [LandingMethod.TESTED_COMMIT, LandingMethod.PROVIDER_MERGE]
    expected = [
        [
            f"`{method}`",
            *("no" if HOSTS[forge].unsupported_reason(method, landing) else "yes" for landing in landing_methods),
        ]
        for method in MergeMethod
    ]
    assert rows(page(forge), "`mergeMethod`") == expected


@each_forge
def test_page_has_the_default_poll_interval(forge: str):
    assert f"`poll_seconds` ({loading.DEFAULT_POLL_S})" in page(forge)


@each_forge
def test_page_calls_only_existing_endpoints_and_commands(forge: str):
    text = "".join(blocks(forge, "sh"))
    called = re.findall(r"^call (\w+) ", text, re.MULTILINE)
    assert "createQueue" in called
    assert set(called) <= TABLE.keys()
    for line in re.findall(r"mergeyard ((?:host|token) [^)\n]*)", text):
        assert CliRunner().invoke(app, [*line.split(), "--help"]).exit_code == 0, line


def test_github_page_names_every_permission_and_event():
    assert [cells[0] for cells in rows(page("github"), "permission")] == [need.title for need in REQUIRED_PERMISSIONS]
    assert [event for event in EVENTS if f"`{event}`" not in page("github")] == []


def test_gitlab_page_names_the_scope_and_every_event():
    named = [f"**{gitlab_diagnostics.SCOPE}**", *(f"*{event}*" for event in gitlab_diagnostics.EVENTS.values())]
    assert [name for name in named if name not in page("gitlab")] == []


def test_gitea_page_requests_every_scope():
    (requested,) = re.findall(r'"scopes": \[(.*?)\]', page("gitea"))
    assert set(gitea_diagnostics.PROBES) <= set(re.findall(r'"(.+?)"', requested))


# Messages


def names_in_messages() -> set[str]:
    """Words in the messages of the adapters that look like the name or value of a setting."""
    found = set[str]()
    for path in FORGES.rglob("*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text())))
        docstrings = [node.value for node in nodes if isinstance(node, ast.Expr)]
        constants = [node for node in nodes if isinstance(node, ast.Constant) and node not in docstrings]
        for text in [node.value for node in constants if isinstance(node.value, str) and " " in node.value]:
            found |= {*re.findall(r"`(\w+)`", text), *re.findall(r"\b[a-z]+(?:_[a-z]+)+\b|\b[a-z]+[A-Z]\w+", text)}
    return found


def test_messages_name_only_settings_that_exist():
    queue_settings = {re.sub("_([a-z])", lambda found: found[1].upper(), field.name) for field in fields(Config)}
    values = {ids.STATUS_CONTEXT, *LandingMethod, *MergeMethod}
    assert names_in_messages() - {*loading.FORGE_KEYS, *SIMPLE_KEYS, *queue_settings, *values} == FORGE_SETTINGS


# Comments


def test_page_lists_every_command():
    prefix = COMMAND_PREFIXES[0]
    assert [cells[0] for cells in rows(COMMENTS, "say")] == [
        f"`{prefix}`",
        *(f"`{prefix} {verb}`" for verb in OTHER_VERBS),
    ]


def test_page_names_every_prefix_of_a_command():
    assert f"begins with {' or '.join(f'`{prefix}`' for prefix in COMMAND_PREFIXES)} " in " ".join(COMMENTS.split())


def test_gitlab_page_does_not_recommend_a_quick_action_of_gitlab():
    assert not re.findall(r"(?<!never )`/merge[ `]", page("gitlab"))


def test_page_lists_every_option_of_a_command():
    listed = {cells[0]: cells[1] for cells in rows(COMMENTS, "option")}
    assert list(listed) == [*(f"`{option}`" for option in SUBMIT_OPTIONS), "a commit"]
    assert [name for name in PRIORITIES if f"`{name}`" not in listed["`--priority`"]] == []
    assert f" to {LOWEST_PRIORITY}." in listed["`--priority`"]


def test_page_lists_every_state_of_the_commit_status():
    shown = {texts.STATUS_STATES.get(state, StatusState.PENDING) for state in PullRequestState}
    assert {cells[0] for cells in rows(COMMENTS, "status")} == shown
    assert f"**One status**, `{ids.STATUS_CONTEXT}`" in COMMENTS


def test_page_names_the_default_label():
    assert f"the label `{Config().enqueueing_label}`" in COMMENTS
