"""The configuration page and its examples match the code: every setting, and nothing else."""

import re
from pathlib import Path
from textwrap import dedent

import pytest
from msgspec import NODEFAULT, json
from msgspec.structs import fields

from mergeyard.domain.access import Scope
from mergeyard.ports.forge import ChecksFrom
from mergeyard.service import repo_config
from mergeyard.service.repo_config import PathTargets, RepositoryConfig
from mergeyard.settings import PlainHost, Settings, load, loading
from mergeyard.settings.parsing import SIMPLE_KEYS, to_environment_variable, to_option
from mergeyard.settings.schema import Oidc

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "operate/configuration.md").read_text()
EXAMPLE = (DOCS / "examples" / "mergeyard.toml").read_text()
COMMENTED = re.compile(r"^# (?=\w+ = )", re.MULTILINE)

DESCRIBED_DEFAULTS = {
    "database_url": "`mergeyard.db` in `data_dir`",
    "public_url": "`http://HOST:PORT`",
    "runner_paths": "none",
    "sealing_key_file": "`sealing.key` in `data_dir`",
    "trusted_proxies": "none",
    "database_url_file": "none",
}


def rows(first_heading: str) -> list[list[str]]:
    """The cells of the table whose first heading is this one."""
    (table,) = re.findall(rf"^\| {re.escape(first_heading)} \|.*\n\|[-|]+\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in table.splitlines()]


def toml_blocks(page: str = PAGE) -> list[str]:
    return [dedent(block) for block in re.findall(r"```toml\n(.*?)```", page, re.DOTALL)]


def default(key: str) -> str:
    value = getattr(Settings(), key)
    return DESCRIBED_DEFAULTS.get(key, f"`{str(value).lower() if isinstance(value, bool) else value}`")


def load_settings(folder: Path, text: str) -> Settings:
    (folder / "repos").mkdir()
    (folder / "secrets").mkdir()
    (folder / "secrets" / "oidc").write_text("shh")
    (folder / "mergeyard.toml").write_text(text)
    return load(folder / "mergeyard.toml", {}, {})


# The page


def test_page_lists_every_setting_with_variable_option_and_default():
    listed = [tuple(cells[:4]) for cells in rows("in the file")]
    assert listed == [
        (f"`{key}`", f"`{to_environment_variable(key)}`", f"`{to_option(key)}`", default(key)) for key in SIMPLE_KEYS
    ]


def test_page_lists_every_key_of_a_plain_host():
    assert [cells[0] for cells in rows("in a host's table")] == [f"`{key}`" for key in loading.PLAIN_KEYS]


def test_page_lists_every_key_of_a_forge():
    assert [cells[0] for cells in rows("in a forge's table")] == [f"`{key}`" for key in loading.FORGE_KEYS]


def test_page_lists_every_key_of_the_repository_file():
    assert [cells[0] for cells in rows("in `.mergeyard.toml`")] == [f"`{key}`" for key in repo_config.KEYS]


def test_page_lists_every_key_of_an_identity_provider_with_its_default():
    defaults = {field.name: field.default for field in fields(Oidc) if field.default is not NODEFAULT}
    listed = {cells[0].strip("`"): cells[1].strip("`") for cells in rows("in `[oidc]`")}
    assert set(listed) == set(loading.OIDC_KEYS)
    for key in ("name_claim", "groups_claim"):
        assert listed[key] == defaults[key]
    assert listed["request_scopes"] == json.encode(defaults["request_scopes"]).decode().replace(",", ", ")
    meaning = next(cells[2] for cells in rows("in `[oidc]`") if cells[0] == "`default_scopes`")
    assert re.findall("`([a-z]+)`", meaning) == list(Scope)


HEADINGS = ("in the file", "in a host's table", "in a forge's table", "in `[oidc]`", "in `.mergeyard.toml`")


@pytest.mark.parametrize("heading", HEADINGS)
def test_every_row_ends_in_a_complete_sentence(heading: str):
    assert all(cells[-1].endswith(".") for cells in rows(heading))


def test_host_of_the_page_loads(tmp_path: Path):
    expected = PlainHost(root=tmp_path / "repos", checks=ChecksFrom.API)
    assert load_settings(tmp_path, toml_blocks()[0]).hosts == {"git.local": expected}


@pytest.mark.parametrize("page", ["operate/configuration.md", "operate/sign-in.md"])
def test_identity_provider_of_the_page_loads(tmp_path: Path, page: str):
    (text,) = (block for block in toml_blocks((DOCS / page).read_text()) if "[oidc]" in block)
    found = load_settings(tmp_path, text).oidc
    assert found is not None
    assert (found.client_secret, found.scopes["platform"]) == ("shh", {Scope.ADMIN})


def test_repository_file_of_the_page_parses():
    config = repo_config.parse_config(toml_blocks()[3].encode())
    targets = PathTargets({"app": ("app/**", "lib/**"), "docs": ("docs/**", "*.md")})
    assert config == RepositoryConfig(("unit", "lint"), {"unit": "make test", "lint": "make lint"}, targets)


def test_page_lists_the_paths_that_are_guarded_by_default():
    config = repo_config.parse_config(b"version = 1\n" + toml_blocks()[4].encode())
    assert config == RepositoryConfig()


# The example


def test_example_loads_unchanged(tmp_path: Path):
    expected = {"git.local": PlainHost(root=tmp_path / "repos", checks=ChecksFrom.API)}
    assert load_settings(tmp_path, EXAMPLE) == Settings(data_dir=tmp_path / "mergeyard-data", hosts=expected)


def test_example_names_every_setting_and_its_default_in_comments(tmp_path: Path):
    text = COMMENTED.sub("", EXAMPLE)
    settings = load_settings(tmp_path, text)
    assert set(re.findall(r"^\[?(\w+)(?: = |\.)", text.partition("provider")[0], re.MULTILINE)) == {
        *SIMPLE_KEYS,
        "hosts",
    }
    assert settings.database_path == Settings(data_dir=tmp_path / "mergeyard-data").database_path
    assert settings.public_url == "https://queue.example.com"
    assert settings.sealing_key_file == tmp_path / "mergeyard-data" / "sealing.key"
    with_defaults = set(SIMPLE_KEYS) - {
        "data_dir",
        "database_url",
        "database_url_file",
        "public_url",
        "sealing_key_file",
    }
    assert {key: getattr(settings, key) for key in with_defaults} == {
        key: getattr(Settings(), key) for key in with_defaults
    }
