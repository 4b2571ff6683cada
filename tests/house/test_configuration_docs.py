"""The configuration page and its examples say what the code says: every setting, and nothing else."""

import re
from pathlib import Path
from textwrap import dedent

import pytest
from msgspec import NODEFAULT, json
from msgspec.structs import fields

from mergeyard.domain.tokens import Scope
from mergeyard.ports.host import ChecksFrom
from mergeyard.service import repository_config
from mergeyard.service.repository_config import PathTargets, RepositoryConfig
from mergeyard.settings import PlainHost, Settings, forge_hosts, hosts, load, oidc
from mergeyard.settings.schema import Oidc
from mergeyard.settings.sources import SIMPLE_KEYS, option, variable

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "configuration.md").read_text()
EXAMPLE = (DOCS / "examples" / "mergeyard.toml").read_text()
COMMENTED = re.compile(r"^# (?=\w+ = )", re.MULTILINE)

DEFAULTS_IN_WORDS = {
    "database_url": "`mergeyard.db` in `data_dir`",
    "public_url": "`http://HOST:PORT`",
    "runner_paths": "none",
    "sealing_key_file": "`sealing.key` in `data_dir`",
    "trusted_proxies": "none",
    "database_url_file": "none",
}


def rows(first_heading: str) -> list[list[str]]:
    """The cells of the table that begins with this heading."""
    (table,) = re.findall(rf"^\| {re.escape(first_heading)} \|.*\n\|[-|]+\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in table.splitlines()]


def toml_blocks(page: str = PAGE) -> list[str]:
    return [dedent(block) for block in re.findall(r"```toml\n(.*?)```", page, re.DOTALL)]


def default(key: str) -> str:
    value = getattr(Settings(), key)
    return DEFAULTS_IN_WORDS.get(key, f"`{str(value).lower() if isinstance(value, bool) else value}`")


def loaded(folder: Path, text: str) -> Settings:
    (folder / "repos").mkdir()
    (folder / "secrets").mkdir()
    (folder / "secrets" / "oidc").write_text("shh")
    (folder / "mergeyard.toml").write_text(text)
    return load(folder / "mergeyard.toml", {}, {})


# The page


def test_every_setting_stands_on_the_page_with_its_variable_its_option_and_its_default():
    told = [tuple(cells[:4]) for cells in rows("in the file")]
    assert told == [(f"`{key}`", f"`{variable(key)}`", f"`{option(key)}`", default(key)) for key in SIMPLE_KEYS]


def test_every_key_of_a_host_stands_on_the_page():
    assert [cells[0] for cells in rows("in a host's table")] == [f"`{key}`" for key in hosts.PLAIN_KEYS]


def test_every_key_of_a_forge_stands_on_the_page():
    assert [cells[0] for cells in rows("in a forge's table")] == [f"`{key}`" for key in forge_hosts.KEYS]


def test_every_key_of_a_repository_stands_on_the_page():
    assert [cells[0] for cells in rows("in `.mergeyard.toml`")] == [f"`{key}`" for key in repository_config.KEYS]


def test_every_key_of_an_identity_provider_stands_on_the_page_with_its_default():
    defaults = {field.name: field.default for field in fields(Oidc) if field.default is not NODEFAULT}
    told = {cells[0].strip("`"): cells[1].strip("`") for cells in rows("in `[oidc]`")}
    assert set(told) == set(oidc.KEYS)
    for key in ("name_claim", "groups_claim"):
        assert told[key] == defaults[key]
    assert told["request_scopes"] == json.encode(defaults["request_scopes"]).decode().replace(",", ", ")
    words = next(cells[2] for cells in rows("in `[oidc]`") if cells[0] == "`default_scopes`")
    assert re.findall("`([a-z]+)`", words) == list(Scope)


HEADINGS = ("in the file", "in a host's table", "in a forge's table", "in `[oidc]`", "in `.mergeyard.toml`")


@pytest.mark.parametrize("heading", HEADINGS)
def test_every_row_ends_in_whole_sentences(heading: str):
    assert all(cells[-1].endswith(".") for cells in rows(heading))


def test_the_host_on_the_page_works(tmp_path: Path):
    expected = PlainHost(root=tmp_path / "repos", checks=ChecksFrom.API)
    assert loaded(tmp_path, toml_blocks()[0]).hosts == {"git.local": expected}


@pytest.mark.parametrize("page", ["configuration.md", "sign-in.md"])
def test_the_identity_provider_on_the_page_works(tmp_path: Path, page: str):
    (text,) = (block for block in toml_blocks((DOCS / page).read_text()) if "[oidc]" in block)
    found = loaded(tmp_path, text).oidc
    assert found is not None
    assert (found.client_secret, found.scopes["platform"]) == ("shh", {Scope.ADMIN})


def test_the_file_of_a_repository_on_the_page_works():
    config = repository_config.parse(toml_blocks()[3].encode())
    targets = PathTargets({"app": ("app/**", "lib/**"), "docs": ("docs/**", "*.md")})
    assert config == RepositoryConfig(("unit", "lint"), {"unit": "make test", "lint": "make lint"}, targets)


def test_the_page_lists_the_paths_that_are_guarded_by_default():
    config = repository_config.parse(b"version = 1\n" + toml_blocks()[4].encode())
    assert config == repository_config.absent()


# The example


def test_the_example_works_as_it_is(tmp_path: Path):
    expected = {"git.local": PlainHost(root=tmp_path / "repos", checks=ChecksFrom.API)}
    assert loaded(tmp_path, EXAMPLE) == Settings(data_dir=tmp_path / "mergeyard-data", hosts=expected)


def test_the_example_without_its_comments_names_every_setting_and_its_default(tmp_path: Path):
    text = COMMENTED.sub("", EXAMPLE)
    settings = loaded(tmp_path, text)
    assert set(re.findall(r"^\[?(\w+)(?: = |\.)", text.partition("provider")[0], re.MULTILINE)) == {
        *SIMPLE_KEYS,
        "hosts",
    }
    assert settings.database == Settings(data_dir=tmp_path / "mergeyard-data").database
    assert settings.public_url == "https://queue.example.com"
    assert settings.sealing_key_file == tmp_path / "mergeyard-data" / "sealing.key"
    alike = set(SIMPLE_KEYS) - {"data_dir", "database_url", "database_url_file", "public_url", "sealing_key_file"}
    assert {key: getattr(settings, key) for key in alike} == {key: getattr(Settings(), key) for key in alike}
