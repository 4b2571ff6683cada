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
from mergeyard.settings import ForgeHost, PlainHost, Settings, load, loading
from mergeyard.settings.parsing import SIMPLE_KEYS, to_environment_variable, to_option
from mergeyard.settings.schema import Oidc, Provider

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "operate/configuration.md").read_text()
EXAMPLE = (DOCS / "examples" / "mergeyard.toml").read_text()
COMMENTED = re.compile(r"^# (?=\w+ = |\[)", re.MULTILINE)

DESCRIBED_DEFAULTS = {
    "committer_email": "the address of the account on the Git host",
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
    (folder / "secrets").mkdir(exist_ok=True)
    (folder / "secrets" / "oidc").write_text("shh")
    (folder / "mergeyard.toml").write_text(text)
    return load(folder / "mergeyard.toml", {}, {})


# The page


def test_page_lists_every_setting_with_its_default():
    listed = [tuple(cells[:2]) for cells in rows("in the file")]
    assert listed == [(f"`{key}`", default(key)) for key in SIMPLE_KEYS]


def test_names_of_variables_and_options_follow_the_rule_of_the_page():
    assert "`log_level` in the file, `MERGEYARD_LOG_LEVEL` as a variable, and `--log-level` as an option" in PAGE
    for key in SIMPLE_KEYS:
        assert to_environment_variable(key) == f"MERGEYARD_{key.upper()}"
        assert to_option(key) == f"--{key.replace('_', '-')}"


def test_page_lists_every_key_of_a_plain_host():
    assert [cells[0] for cells in rows("in a host's table")] == [f"`{key}`" for key in loading.PLAIN_KEYS]


def test_page_lists_every_key_of_a_git_host():
    assert [cells[0] for cells in rows("in a Git host's table")] == [f"`{key}`" for key in loading.FORGE_KEYS]


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


HEADINGS = ("in the file", "in a host's table", "in a Git host's table", "in `[oidc]`", "in `.mergeyard.toml`")


@pytest.mark.parametrize("heading", HEADINGS)
def test_every_row_ends_in_a_complete_sentence(heading: str):
    assert all(cells[-1].endswith(".") for cells in rows(heading))


def test_host_of_the_page_loads(tmp_path: Path):
    expected = PlainHost(root=tmp_path / "repos", checks=ChecksFrom.API)
    assert load_settings(tmp_path, toml_blocks()[0]).hosts == {"git.local": expected}


def test_identity_provider_of_the_sign_in_page_loads(tmp_path: Path):
    (text,) = toml_blocks((DOCS / "operate/sign-in.md").read_text())
    found = load_settings(tmp_path, text).oidc
    assert found is not None
    assert (found.client_secret, found.scopes["platform"]) == ("shh", {Scope.ADMIN})


def test_repository_file_of_the_page_parses():
    config = repo_config.parse_config(toml_blocks()[2].encode())
    targets = PathTargets({"app": ("app/**", "lib/**"), "docs": ("docs/**", "*.md")})
    assert config == RepositoryConfig(("unit", "lint"), {"unit": "make test", "lint": "make lint"}, targets)


def test_page_lists_the_paths_that_are_guarded_by_default():
    config = repo_config.parse_config(b"version = 1\n" + toml_blocks()[3].encode())
    assert config == RepositoryConfig()


# The example


def test_example_loads_unchanged(tmp_path: Path):
    expected = {"git.local": PlainHost(root=tmp_path / "repos", checks=ChecksFrom.API)}
    assert load_settings(tmp_path, EXAMPLE) == Settings(data_dir=tmp_path / "mergeyard-data", hosts=expected)


def uncommented() -> str:
    """The example with every commented setting and table turned on."""
    return COMMENTED.sub("", EXAMPLE)


def load_complete_example(folder: Path) -> Settings:
    (folder / "secrets").mkdir()
    for name in re.findall(r'_file = "(secrets/[^"]+)"', EXAMPLE):
        (folder / name).write_text("sqlite:///mergeyard-data/mergeyard.db" if "database" in name else "shh")
    return load_settings(folder, uncommented())


def test_example_names_every_setting_of_the_service_and_its_default(tmp_path: Path):
    settings = load_complete_example(tmp_path)
    assert set(re.findall(r"^(\w+) = ", uncommented().partition("[hosts")[0], re.MULTILINE)) == set(SIMPLE_KEYS)
    assert settings.database_path == Settings(data_dir=tmp_path / "mergeyard-data").database_path
    assert settings.public_url == "https://queue.example.com"
    assert settings.sealing_key_file == tmp_path / "mergeyard-data" / "sealing.key"
    with_defaults = set(SIMPLE_KEYS) - {
        "committer_email",
        "data_dir",
        "database_url",
        "database_url_file",
        "public_url",
        "sealing_key_file",
    }
    assert {key: getattr(settings, key) for key in with_defaults} == {
        key: getattr(Settings(), key) for key in with_defaults
    }


def test_example_has_a_git_host_of_each_kind_with_every_key(tmp_path: Path):
    settings = load_complete_example(tmp_path)
    forges = [host for host in settings.hosts.values() if isinstance(host, ForgeHost)]
    assert [host.provider for host in forges] == list(Provider)
    assert all(host.poll_seconds == loading.DEFAULT_POLL_S and host.webhook_secret for host in forges)
    tables = re.findall(r"^\[hosts\..+\]\n((?:[^\[\n].*\n)+)", uncommented(), re.MULTILINE)
    keys = {key for table in tables for key in re.findall(r"^(\w+) = ", table, re.MULTILINE)}
    assert keys == {*loading.PLAIN_KEYS, *loading.FORGE_KEYS}


def test_example_has_every_key_of_an_identity_provider(tmp_path: Path):
    settings = load_complete_example(tmp_path)
    assert settings.oidc is not None
    assert settings.oidc.scopes["platform"] == {Scope.ADMIN}
    text = uncommented().partition("[oidc]\n")[2]
    found = {*re.findall(r"^(\w+) = ", text.partition("[oidc.scopes]")[0], re.MULTILINE), "scopes"}
    assert found == set(loading.OIDC_KEYS)
    for key in ("name_claim", "groups_claim", "request_scopes", "default_scopes"):
        assert getattr(settings.oidc, key) == next(f.default for f in fields(Oidc) if f.name == key)


def test_sign_in_page_quotes_the_messages_of_the_code():
    source = "".join(path.read_text() for path in (DOCS.parent / "src").rglob("*.py"))
    table = (DOCS / "operate/sign-in.md").read_text().partition("| message on the page |")[2]
    quoted = re.findall(r"^\| ([A-Z].+?)\. \|", table, re.MULTILINE)
    assert [message for message in quoted if message not in source] == [
        "An error page of the provider about the redirect URL"
    ]
