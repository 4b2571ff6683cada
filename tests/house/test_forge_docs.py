"""The pages of the forges, and the one on talking, say what the code does there."""

import ast
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import fields
from typer.testing import CliRunner

from mergeyard.adapters import forges
from mergeyard.adapters.forges.access import Access
from mergeyard.adapters.forges.gitea import examining as of_gitea
from mergeyard.adapters.forges.gitea.host import GiteaHost
from mergeyard.adapters.forges.github.host import GithubHost
from mergeyard.adapters.forges.github.permissions import EVENTS, NEEDS
from mergeyard.adapters.forges.gitlab import examining as of_gitlab
from mergeyard.adapters.forges.gitlab.host import GitlabHost
from mergeyard.api.hooks import PATH
from mergeyard.api.routes import TABLE
from mergeyard.cli import app
from mergeyard.domain import ours
from mergeyard.domain.config import Config, LandingMethod, MergeMethod
from mergeyard.domain.priorities import LOWEST, PRIORITIES
from mergeyard.domain.states import PrState
from mergeyard.domain.statuses import StatusState
from mergeyard.ports.host import Host
from mergeyard.service.talking import words
from mergeyard.service.talking.commands import OPTIONS, OTHER_VERBS, WORDS
from mergeyard.settings import forge_hosts, load
from mergeyard.settings.schema import ForgeHost
from mergeyard.settings.sources import SIMPLE_KEYS
from tests.support.clock import HandClock

DOCS = Path(__file__).parents[2] / "docs"
TALKING = (DOCS / "talking.md").read_text()
ACCESS = Access(name="forge.example.com", pages="https://forge.example.com", api="https://forge.example.com/api")
HOSTS: dict[str, Host] = {
    "github": GithubHost(ACCESS, HandClock()),
    "gitlab": GitlabHost(ACCESS, HandClock()),
    "gitea": GiteaHost(ACCESS, HandClock()),
}
FORGES = Path(forges.__file__).parent
WORDS_OF_FORGES = {"allow_manual_merge"}
"""Names in messages that belong to a forge."""
ONLY_FOR_APPS = {"app_id", "private_key_file"}

every_forge = pytest.mark.parametrize("forge", HOSTS)


def page(forge: str) -> str:
    return (DOCS / "forges" / f"{forge}.md").read_text()


def rows(text: str, first_heading: str) -> list[list[str]]:
    """The cells of the table that begins with this heading."""
    (table,) = re.findall(rf"^\| {re.escape(first_heading)} \|.*\n\|[-|]+\n((?:\|.*\n)+)", text, re.MULTILINE)
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in table.splitlines()]


def blocks(forge: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page(forge), re.MULTILINE | re.DOTALL)


def settings_file(forge: str) -> str:
    """As it stands on the page, or as the shell would write it."""
    written = re.findall(r"<<END\n(.*?)^END$", page(forge), re.MULTILINE | re.DOTALL)
    (text,) = [*blocks(forge, "toml"), *written]
    return text.replace("$QUEUE", "https://queue.example.com").replace("$GITEA", "https://gitea.example.com")


# The forges


@every_forge
def test_the_settings_file_on_the_page_works(forge: str, tmp_path: Path):
    table: dict[str, Any]
    ((name, table),) = tomllib.loads(settings_file(forge))["hosts"].items()
    (tmp_path / "secrets").mkdir()
    for key in forge_hosts.KEYS:
        if key.endswith("_file") and key in table:
            (tmp_path / table[key]).write_text("hush")
    (tmp_path / "mergeyard.toml").write_text(settings_file(forge))
    host = load(tmp_path / "mergeyard.toml", {}, {}).hosts[name]
    assert isinstance(host, ForgeHost)
    assert (host.provider, host.webhook_secret) == (forge, "hush")


@every_forge
def test_the_page_names_every_key_that_this_forge_has(forge: str):
    known = set(forge_hosts.KEYS) - (set() if forge == "github" else ONLY_FOR_APPS)
    assert {key for key in known if not re.search(rf"\b{key}\b", page(forge))} == set()


@every_forge
def test_the_address_of_the_webhook_is_one_that_is_listened_at(forge: str):
    ((name, _),) = tomllib.loads(settings_file(forge))["hosts"].items()
    addresses = re.findall(r"/hooks/\w+/[\w.]+\w", page(forge))
    assert set(addresses) == {f"/hooks/{forge}/{name}"}
    assert PATH.fullmatch(addresses[0])


@every_forge
def test_the_page_shows_which_ways_to_merge_work_there(forge: str):
    ways = [LandingMethod.TESTED_COMMIT, LandingMethod.PROVIDER_MERGE]
    expected = [
        [f"`{method}`", *("no" if HOSTS[forge].refuses(method, landing) else "yes" for landing in ways)]
        for method in MergeMethod
    ]
    assert rows(page(forge), "`mergeMethod`") == expected


@every_forge
def test_the_page_tells_how_often_a_forge_is_read(forge: str):
    assert f"`poll_seconds` ({forge_hosts.USUAL})" in page(forge)


@every_forge
def test_the_page_calls_only_what_is_there(forge: str):
    text = "".join(blocks(forge, "sh"))
    called = re.findall(r"^call (\w+) ", text, re.MULTILINE)
    assert "createQueue" in called
    assert set(called) <= TABLE.keys()
    for line in re.findall(r"mergeyard ((?:host|token) [^)\n]*)", text):
        assert CliRunner().invoke(app, [*line.split(), "--help"]).exit_code == 0, line


def test_the_page_of_github_names_every_permission_and_every_event():
    assert [cells[0] for cells in rows(page("github"), "permission")] == [need.title for need in NEEDS]
    assert [event for event in EVENTS if f"`{event}`" not in page("github")] == []


def test_the_page_of_gitlab_names_the_scope_and_every_event():
    named = [f"**{of_gitlab.SCOPE}**", *(f"*{event}*" for event in of_gitlab.EVENTS.values())]
    assert [words for words in named if words not in page("gitlab")] == []


def test_the_page_of_gitea_asks_for_every_scope():
    (asked,) = re.findall(r'"scopes": \[(.*?)\]', page("gitea"))
    assert set(of_gitea.PROBES) <= set(re.findall(r'"(.+?)"', asked))


# Messages


def names_in_messages() -> set[str]:
    """Words in the messages of the adapters that look like the name or the value of a setting."""
    found = set[str]()
    for path in FORGES.rglob("*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text())))
        docstrings = [node.value for node in nodes if isinstance(node, ast.Expr)]
        constants = [node for node in nodes if isinstance(node, ast.Constant) and node not in docstrings]
        for text in [node.value for node in constants if isinstance(node.value, str) and " " in node.value]:
            found |= {*re.findall(r"`(\w+)`", text), *re.findall(r"\b[a-z]+(?:_[a-z]+)+\b|\b[a-z]+[A-Z]\w+", text)}
    return found


def test_messages_name_only_settings_that_exist():
    of_queues = {re.sub("_([a-z])", lambda found: found[1].upper(), field.name) for field in fields(Config)}
    values = {ours.STATUS, *LandingMethod, *MergeMethod}
    assert names_in_messages() - {*forge_hosts.KEYS, *SIMPLE_KEYS, *of_queues, *values} == WORDS_OF_FORGES


# Talking


def test_every_command_stands_on_the_page():
    word = WORDS[0]
    assert [cells[0] for cells in rows(TALKING, "say")] == [f"`{word}`", *(f"`{word} {verb}`" for verb in OTHER_VERBS)]


def test_every_word_that_begins_a_command_stands_on_the_page():
    assert f"begins with {' or '.join(f'`{word}`' for word in WORDS)} " in " ".join(TALKING.split())


def test_nobody_is_told_to_say_what_gitlab_takes_for_itself():
    assert not re.findall(r"(?<!never )`/merge[ `]", page("gitlab"))


def test_every_option_of_a_command_stands_on_the_page():
    told = {cells[0]: cells[1] for cells in rows(TALKING, "option")}
    assert list(told) == [*(f"`{option}`" for option in OPTIONS), "a commit"]
    assert [name for name in PRIORITIES if f"`{name}`" not in told["`--priority`"]] == []
    assert f" to {LOWEST}." in told["`--priority`"]


def test_every_state_of_our_status_stands_on_the_page():
    shown = {words.STATES.get(state, StatusState.PENDING) for state in PrState}
    assert {cells[0] for cells in rows(TALKING, "status")} == shown
    assert f"**One status**, `{ours.STATUS}`" in TALKING


def test_the_label_on_the_page_is_the_usual_one():
    assert f"the label `{Config().enqueueing_label}`" in TALKING
