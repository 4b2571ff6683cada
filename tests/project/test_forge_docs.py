"""The pages for a first start and for developers match the code."""

import ast
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any, get_args
from urllib.parse import parse_qsl, urlsplit

import pytest
from msgspec.structs import fields
from typer.core import TyperGroup
from typer.main import get_group

from mergeyard.adapters import forges
from mergeyard.adapters.forges.gitea import diagnostics as gitea_diagnostics
from mergeyard.adapters.forges.gitea.host import GiteaHost
from mergeyard.adapters.forges.github.auth import EVENTS, REQUIRED_PERMISSIONS
from mergeyard.adapters.forges.github.host import GithubHost
from mergeyard.adapters.forges.gitlab import diagnostics as gitlab_diagnostics
from mergeyard.adapters.forges.gitlab.host import GitlabHost
from mergeyard.adapters.forges.http import ForgeConfig
from mergeyard.adapters.host_plain.host import PlainHost
from mergeyard.cli import app
from mergeyard.domain import ids
from mergeyard.domain.config import LOWEST_PRIORITY, PRIORITIES, Config, HeadBranchFallback, LandingMethod, MergeMethod
from mergeyard.domain.pull_requests import StatusState
from mergeyard.domain.states import PULL_REQUEST_TRANSITIONS, TERMINAL_STATES, PullRequestState, Reason
from mergeyard.ports.forge import ChecksFrom, Host
from mergeyard.service.comments import texts
from mergeyard.service.comments.commands import COMMAND_PREFIXES, OTHER_VERBS, SUBMIT_OPTIONS
from mergeyard.settings import load, loading
from mergeyard.settings.parsing import SIMPLE_KEYS
from mergeyard.settings.schema import ForgeHost, UnreadableRules
from tests.project.states_page import WAIT_REASONS
from tests.support.clock import ManualClock

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted([*(DOCS / "start").glob("*.md"), *(DOCS / "developers").glob("*.md")])
COMMENTS = (DOCS / "developers/merge-your-pr.md").read_text()
STUCK = (DOCS / "developers/stuck.md").read_text()
MERGE_METHODS = (DOCS / "admins/merge-methods.md").read_text()
ACCESS = ForgeConfig(
    name="forge.example.com", web_url="https://forge.example.com", api_url="https://forge.example.com/api"
)
HOSTS: dict[str, Host] = {
    "github": GithubHost(ACCESS, ManualClock()),
    "gitlab": GitlabHost(ACCESS, ManualClock()),
    "gitea": GiteaHost(ACCESS, ManualClock()),
}
FORGES = Path(forges.__file__).parent
FORGE_SETTINGS = {
    "allow_manual_merge", "block_admin_merge_override", "block_on_outdated_branch", "enable_merge_whitelist",
    "enable_push_whitelist", "merge_whitelist_usernames", "protected_file_patterns", "push_whitelist_usernames",
    "require_signed_commits", "unprotected_file_patterns",
}  # fmt: skip
"""Names in messages that are settings of a forge."""

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
    (text,) = [block for block in [*blocks(forge, "toml"), *from_shell] if "[hosts." in block]
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
def test_webhook_address_of_the_page_is_served(forge: str):
    ((name, _),) = tomllib.loads(settings_file(forge))["hosts"].items()
    addresses = re.findall(r"/hooks/\w+/[\w.]+\w", page(forge))
    assert set(addresses) == {f"/hooks/{forge}/{name}"}


def test_github_link_requests_exactly_the_permissions_and_events_of_the_app():
    """And the permission for teams, which the owner of an installation would have to accept later."""
    link, *others = re.findall(r"^https://github\.com/\S+$", page("github"), re.MULTILINE)
    assert others == []
    parts = urlsplit(str(link))
    assert parts.path == "/organizations/acme/settings/apps/new"
    query = parse_qsl(parts.query, strict_parsing=True)
    assert [value for name, value in query if name == "events[]"] == list(EVENTS)
    assert {name: value for name, value in query if name != "events[]"} == {
        need.permission: need.level for need in REQUIRED_PERMISSIONS
    } | {
        "members": "read",
        "name": "acme-mergeyard",
        "url": "https://queue.example.com",
        "public": "false",
        "webhook_active": "true",
        "webhook_url": "https://queue.example.com/hooks/github/github.com",
    }


def test_gitlab_page_names_the_scope_and_every_event():
    named = [f"**{gitlab_diagnostics.SCOPE}**", *(f"*{event}*" for event in gitlab_diagnostics.EVENTS.values())]
    assert [name for name in named if name not in page("gitlab")] == []


def test_gitea_page_requests_every_scope():
    (requested,) = re.findall(r'"scopes": \[(.*?)\]', page("gitea"))
    assert set(gitea_diagnostics.PROBES) <= set(re.findall(r'"(.+?)"', requested))


# What all Git hosts have in common


def find_supported(host: Host, method: MergeMethod, fallback: HeadBranchFallback) -> list[LandingMethod]:
    configs = (Config(merge_method=method, landing=landing, head_branch_fallback=fallback) for landing in LandingMethod)
    return [config.landing for config in configs if host.unsupported_reason(config) is None]


def describe_support(host: Host, method: MergeMethod) -> str:
    if len(find_supported(host, method, HeadBranchFallback.PROVIDER_MERGE)) == len(LandingMethod):
        return "both"
    (only,) = find_supported(host, method, HeadBranchFallback.CLOSE)
    return f"only `{only}`, with `headBranchFallback` `{HeadBranchFallback.CLOSE.value}`"


def test_page_shows_which_merge_methods_work_on_each_git_host(tmp_path: Path):
    hosts: dict[str, Host] = {
        "GitHub": HOSTS["github"],
        "GitLab": HOSTS["gitlab"],
        "Gitea, Forgejo": HOSTS["gitea"],
        "plain Git": PlainHost("git.local", tmp_path, ChecksFrom.API),
    }
    expected = [[name, *(describe_support(host, method) for method in MergeMethod)] for name, host in hosts.items()]
    assert rows(MERGE_METHODS, "Git host") == expected


def test_page_has_the_default_poll_interval():
    assert f"`poll_seconds` ({loading.DEFAULT_POLL_S})" in MERGE_METHODS


# Commands


def shell_commands(path: Path) -> list[list[str]]:
    """The arguments of each `mergeyard` command in the shell code of a page."""
    code = "".join(re.findall(r"^```sh\n(.*?)^```$", path.read_text(), re.MULTILINE | re.DOTALL))
    return list(map(shlex.split, re.findall(r"(?:^|/bin/)mergeyard ([^|>&\n]+)", code, re.MULTILINE)))


def commands_on(path: Path) -> list[list[str]]:
    """Also those in its text."""
    return [*shell_commands(path), *map(shlex.split, re.findall(r"`mergeyard ([^`\n]+)`", path.read_text()))]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_commands_of_the_page_exist_and_accept_their_options(path: Path):
    """A command that is only named, without any argument, must exist."""
    for arguments in commands_on(path):
        command, remaining = get_group(app), arguments
        context = command.make_context("mergeyard", remaining[:])
        while isinstance(command, TyperGroup) and remaining:
            _, found, remaining = command.resolve_command(context, remaining)
            assert found is not None, arguments
            if remaining:
                context = found.make_context(found.name, remaining[:], parent=context)
            command = found


def test_commands_are_found_in_shell_code_and_in_the_text():
    found = [" ".join(arguments) for path in PAGES for arguments in commands_on(path)]
    assert {"serve", "login https://queue.example.com", "status 1 --timeline", "submit 12"} <= set(found)


# Messages


def names_in_messages() -> set[str]:
    """Words in the messages of the adapters that look like the name or value of a setting."""
    found = set[str]()
    for path in FORGES.rglob("*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text())))
        docstrings = [node.value for node in nodes if isinstance(node, ast.Expr)]
        constants = [node for node in nodes if isinstance(node, ast.Constant) and node not in docstrings]
        texts = [node.value for node in constants if isinstance(node.value, str) and " " in node.value]
        for text in [text for text in texts if not text.startswith(("\n", "... on "))]:  # those are queries
            found |= {*re.findall(r"`(\w+)`", text), *re.findall(r"\b[a-z]+(?:_[a-z]+)+\b|\b[a-z]+[A-Z]\w+", text)}
    return found


def test_messages_name_only_settings_that_exist():
    queue_settings = {re.sub("_([a-z])", lambda found: found[1].upper(), field.name) for field in fields(Config)}
    values = {ids.STATUS_CONTEXT, *LandingMethod, *MergeMethod, *HeadBranchFallback, *get_args(UnreadableRules)}
    assert names_in_messages() - {*loading.FORGE_KEYS, *SIMPLE_KEYS, *queue_settings, *values} == FORGE_SETTINGS


# Comments


def test_page_lists_every_command():
    prefix = COMMAND_PREFIXES[0]
    assert [cells[0] for cells in rows(COMMENTS, "comment")] == [
        f"`{prefix}`",
        *(f"`{prefix} {verb}`" for verb in OTHER_VERBS),
    ]


def test_page_names_every_prefix_of_a_command():
    assert f"begins with {' or '.join(f'`{prefix}`' for prefix in COMMAND_PREFIXES)}" in " ".join(COMMENTS.split())


def test_gitlab_page_does_not_recommend_a_quick_action_of_gitlab():
    assert not re.findall(r"(?<!never )`/merge[ `]", page("gitlab"))


def test_page_lists_every_option_of_a_command():
    listed = {cells[0]: cells[1] for cells in rows(COMMENTS, "option")}
    assert list(listed) == [*(f"`{option}`" for option in SUBMIT_OPTIONS), "a commit"]
    assert [name for name in PRIORITIES if f"`{name}`" not in listed["`--priority`"]] == []
    assert f" (first) to {LOWEST_PRIORITY}." in listed["`--priority`"]


def test_page_lists_every_state_of_the_check():
    shown = {texts.STATUS_STATES.get(state, StatusState.PENDING).value for state in PullRequestState}
    (text,) = re.findall(rf"\*\*One check\*\*, `{ids.STATUS_CONTEXT}`(.+?)\n\n", COMMENTS, re.DOTALL)
    assert set(re.findall("`(.+?)`", text)) == shown


def test_page_lists_every_state_with_its_label():
    labels = {headline.partition(" ")[2] for headline in texts.HEADLINES.values()}
    assert {cells[0] for cells in rows(COMMENTS, "label")} == labels


def test_page_has_the_default_time_to_become_ready():
    assert f"by default {Config().not_ready_timeout_hours} hours" in COMMENTS
    assert f"by default {Config().not_ready_timeout_hours} hours" in STUCK
    assert f"`testingTimeoutMinutes` ({Config().testing_timeout_minutes} by default)" in STUCK


def test_page_names_the_default_label():
    assert f"the label `{Config().enqueueing_label}`" in COMMENTS


# Stuck pull requests


def test_page_explains_every_reason_for_waiting_and_for_leaving():
    ends = {reason for row in PULL_REQUEST_TRANSITIONS if row.to in TERMINAL_STATES for reason in row.reasons}
    merged = {
        Reason.MERGED_BY_QUEUE,
        Reason.MERGED_DIRECTLY,
        Reason.MERGED_MANUALLY,
        Reason.MERGED_WITH_ANOTHER,
    }
    assert {reason for reason in (WAIT_REASONS | ends) - merged if f"`{reason}`" not in STUCK} == set()


def test_page_names_only_reasons_that_exist():
    named = set(re.findall(r"`([a-z]+(?:_[a-z]+)+)`", STUCK))
    assert named - {reason.value for reason in Reason} == set()
