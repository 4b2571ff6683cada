"""How a forge is named, where its secrets may stand, and what is said when they do not."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from mergeyard.ports.host import ChecksFrom
from mergeyard.settings import ForgeHost, Provider
from mergeyard.settings.forge_hosts import variable
from mergeyard.settings.hosts import Hosts, read_hosts
from mergeyard.settings.sources import File, read_file

GITHUB = '[hosts."github.com"]\nprovider = "github"\n'
TOKEN = {"MERGEYARD_HOST_GITHUB_COM_TOKEN": "secret"}


def read(folder: Path, text: str, environment: Mapping[str, str]) -> tuple[Hosts, list[str]]:
    path = folder / "mergeyard.toml"
    path.write_text(text)
    file = read_file(path, {})
    assert isinstance(file, File)
    hosts, complaints = read_hosts(file, environment)
    return hosts, [complaint.words.removeprefix(str(path)).strip() for complaint in complaints]


def the_forge(folder: Path, text: str, environment: Mapping[str, str]) -> ForgeHost:
    hosts, complaints = read(folder, text, environment)
    assert complaints == []
    (host,) = hosts.values()
    assert isinstance(host, ForgeHost)
    return host


def the_complaint(folder: Path, text: str, environment: Mapping[str, str] = TOKEN) -> str:
    hosts, (complaint,) = read(folder, text, environment)
    assert hosts == {}
    return complaint


@pytest.mark.parametrize(
    ("name", "provider", "api"),
    [
        ("github.com", "github", "https://api.github.com"),
        ("git.acme.com", "github", "https://git.acme.com/api/v3"),
        ("gitlab.com", "gitlab", "https://gitlab.com/api/v4"),
        ("codeberg.org", "gitea", "https://codeberg.org/api/v1"),
    ],
)
def test_a_name_and_a_token_are_enough(tmp_path: Path, name: str, provider: str, api: str):
    text = f'[hosts."{name}"]\nprovider = "{provider}"\n'
    assert the_forge(tmp_path, text, {variable(name, "token"): "secret\n"}) == ForgeHost(
        provider=Provider(provider), url=f"https://{name}", api_url=api, token="secret", checks=ChecksFrom.HOST
    )


def test_it_may_be_elsewhere_than_its_name_says(tmp_path: Path):
    forge = the_forge(tmp_path, GITHUB + 'url = "http://127.0.0.1:3000/git/"\n', TOKEN)
    assert (forge.url, forge.api_url) == ("http://127.0.0.1:3000/git", "https://api.github.com")
    forge = the_forge(tmp_path, GITHUB + 'api_url = "http://127.0.0.1:3000/api/"\n', TOKEN)
    assert (forge.url, forge.api_url) == ("https://github.com", "http://127.0.0.1:3000/api")


def test_secrets_stand_in_files_beside_the_settings(tmp_path: Path):
    for name in ("token", "key", "hook"):
        (tmp_path / name).write_text(f"the {name}\n")
    text = GITHUB + 'app_id = "12"\nprivate_key_file = "key"\ntoken_file = "token"\nwebhook_secret_file = "hook"\n'
    forge = the_forge(tmp_path, text, {})
    secrets = (forge.token, forge.app_id, forge.private_key, forge.webhook_secret)
    assert secrets == ("the token", "12", "the key", "the hook")


def test_a_file_goes_before_the_environment(tmp_path: Path):
    (tmp_path / "token").write_text("from the file")
    assert the_forge(tmp_path, GITHUB + 'token_file = "token"', TOKEN).token == "from the file"


def test_secrets_are_never_shown(tmp_path: Path):
    assert "secret" not in repr(the_forge(tmp_path, GITHUB, TOKEN))


@pytest.mark.parametrize("key", ["token", "private_key", "webhook_secret"])
def test_a_secret_in_the_table_is_refused_and_not_repeated(tmp_path: Path, key: str):
    complaint = the_complaint(tmp_path, GITHUB + f'{key} = "abc123"')
    assert f"set {key}_file to a file, or the variable MERGEYARD_HOST_GITHUB_COM_{key.upper()}" in complaint
    assert "abc123" not in complaint


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('url = "github.com"', "expected an address such as"),
        ('url = "https://me:pw@x"', "remove what stands before the @"),
        ('api_url = "ftp://x"', "expected an address such as"),
        ('checks = "github"', "expected one of api, run, host"),
        ('checks = "run"', "or accept the risk with allow_untrusted_checks = true"),
        ('checks = "run"\nallow_untrusted_checks = false', "files of pull requests, also from forks"),
        ('checks = "run"\nallow_untrusted_checks = "true"', "expected true or false"),
        ("poll_seconds = 0", "expected a whole number from 1 to 60"),
        ("poll_seconds = true", "expected a whole number from 1 to 60"),
        ('token_file = "nowhere"', "cannot be read: No such file or directory"),
        ('app_id = "12"', "an App needs its key: set private_key_file"),
        ('tokenfile = "x"', "did you mean token_file?"),
        ('root = "repos"', "there is no such setting"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, line: str, words: str):
    assert words in the_complaint(tmp_path, GITHUB + line)


@pytest.mark.parametrize(("name", "provider"), [("github.com", "github"), ("gitlab.com", "gitlab"), ("a.b", "gitea")])
def test_a_forge_runs_checks_on_this_machine_only_where_untrusted_checks_are_allowed(
    tmp_path: Path, name: str, provider: str
):
    table = f'[hosts."{name}"]\nprovider = "{provider}"\nchecks = "run"\n'
    token = {variable(name, "token"): "secret"}
    assert "allow_untrusted_checks" in the_complaint(tmp_path, table, token)
    assert the_forge(tmp_path, table + "allow_untrusted_checks = true", token).checks is ChecksFrom.RUN


def test_an_empty_file_is_no_secret(tmp_path: Path):
    (tmp_path / "token").write_text(" \n")
    assert the_complaint(tmp_path, GITHUB + 'token_file = "token"').endswith("is empty; put the secret into it")


def test_something_must_open_it(tmp_path: Path):
    complaint = the_complaint(tmp_path, GITHUB, {})
    assert complaint.endswith("set token_file, or the variable MERGEYARD_HOST_GITHUB_COM_TOKEN")


def test_only_github_has_apps(tmp_path: Path):
    text = '[hosts."gitlab.com"]\nprovider = "gitlab"\napp_id = "1"'
    assert the_complaint(tmp_path, text).endswith("only GitHub has Apps; give gitlab a token_file")
