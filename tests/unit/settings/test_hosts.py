"""Which hosts can be named, and what is said about those that cannot."""

from pathlib import Path

import pytest

from mergeyard.ports.host import ChecksFrom
from mergeyard.settings import PlainHost
from mergeyard.settings.hosts import Hosts, read_hosts
from mergeyard.settings.sources import File, read_file


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "repos").mkdir()
    return tmp_path


def file_with(folder: Path, text: str) -> File:
    path = folder / "mergeyard.toml"
    path.write_text(text)
    file = read_file(path, {})
    assert isinstance(file, File)
    return file


def hosts(folder: Path, text: str) -> Hosts:
    found, complaints = read_hosts(file_with(folder, text), {})
    assert complaints == []
    return found


def complaints(folder: Path, text: str) -> list[str]:
    _, found = read_hosts(file_with(folder, text), {})
    return [complaint.words.removeprefix(str(folder / "mergeyard.toml")).strip() for complaint in found]


def test_a_plain_host_has_a_folder_and_gets_its_checks_from_the_api(folder: Path):
    found = hosts(folder, '[hosts."git.local"]\nprovider = "git"\nroot = "repos"')
    assert found == {"git.local": PlainHost(root=folder / "repos", checks=ChecksFrom.API)}


def test_a_plain_host_can_have_its_checks_run(folder: Path):
    found = hosts(folder, '[hosts."git.local:8022"]\nprovider = "git"\nroot = "repos"\nchecks = "run"')
    assert found["git.local:8022"].checks is ChecksFrom.RUN


def test_the_name_of_a_host_is_lower_case(folder: Path):
    assert set(hosts(folder, '[hosts."Git.Local"]\nprovider = "git"\nroot = "repos"')) == {"git.local"}


def test_two_spellings_of_one_host_are_one_too_many(folder: Path):
    text = '[hosts.A]\nprovider = "git"\nroot = "repos"\n[hosts.a]\nprovider = "git"\nroot = "repos"'
    assert complaints(folder, text) == [
        "line 4, hosts.a: this host is there already, in other letters; keep one of the two"
    ]


def test_no_hosts_are_fine_for_commands_that_reach_none(folder: Path):
    assert hosts(folder, "port = 1") == {}


@pytest.mark.parametrize("line", ["", 'provider = "svn"', "provider = 1"])
def test_somebody_must_keep_the_repositories(folder: Path, line: str):
    (complaint,) = complaints(folder, f'[hosts.a]\n{line}\nroot = "repos"')
    assert complaint.endswith('say who keeps the repositories: provider = one of "git", "github", "gitlab", "gitea"')


def test_a_root_must_be_named(folder: Path):
    (complaint,) = complaints(folder, '[hosts.a]\nprovider = "git"')
    assert complaint.startswith("line 1, hosts.a: root is missing")


def test_a_root_must_be_there(folder: Path):
    (complaint,) = complaints(folder, '[hosts.a]\nprovider = "git"\nroot = "nowhere"')
    assert complaint == (f"line 3, hosts.a.root: there is no folder {folder / 'nowhere'}; make it, or correct the path")


@pytest.mark.parametrize("root", ["3", '""', '"a\\u0000b"', "[]"])
def test_a_root_must_be_a_path(folder: Path, root: str):
    (complaint,) = complaints(folder, f'[hosts.a]\nprovider = "git"\nroot = {root}')
    assert complaint == "line 3, hosts.a.root: expected the path of a folder"


@pytest.mark.parametrize("checks", ['"never"', "1", "[]"])
def test_checks_come_from_the_api_or_are_run(folder: Path, checks: str):
    (complaint,) = complaints(folder, f'[hosts.a]\nprovider = "git"\nroot = "repos"\nchecks = {checks}')
    assert complaint == "line 4, hosts.a.checks: expected one of api, run"


def test_a_mistyped_key_is_told_with_the_one_that_was_meant(folder: Path):
    (complaint,) = complaints(folder, '[hosts."git.local"]\nprovider = "git"\nroot = "repos"\ncheck = "run"')
    assert complaint == 'line 4, hosts."git.local".check: there is no such setting; did you mean checks?'


@pytest.mark.parametrize("name", ["..", "a/b", "-a", "", "a b", "a\\n"])
def test_a_name_that_leads_elsewhere_is_refused(folder: Path, name: str):
    (complaint,) = complaints(folder, f'[hosts."{name}"]\nprovider = "git"\nroot = "repos"')
    assert complaint.endswith("expected the name of a host, such as git.local")


@pytest.mark.parametrize("text", ["hosts = 3", "[[hosts]]", "[hosts]\na = 3"])
def test_hosts_are_tables(folder: Path, text: str):
    (complaint,) = complaints(folder, text)
    assert "expected" in complaint
    assert "table" in complaint
