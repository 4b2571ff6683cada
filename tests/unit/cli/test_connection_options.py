"""Shell completion of repositories and branches, with names from the server."""

from pathlib import Path

import pytest
import typer

from mergeyard.cli import connection_options
from mergeyard.cli.servers import StoredServer, StoredServers, write_servers


def test_completions_are_unique_and_sorted():
    assert connection_options.filter_by_prefix("a", ["ab", "b", "aa", "ab"]) == ["aa", "ab"]


@pytest.mark.parametrize("url", ["", "http://127.0.0.1:9"])
def test_without_a_server_there_are_no_completions(monkeypatch: pytest.MonkeyPatch, url: str):
    monkeypatch.setenv("MERGEYARD_URL", url)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    assert connection_options.complete_repositories("") == []
    assert connection_options.complete_branches("") == []


def test_with_an_unsupported_proxy_there_are_no_completions(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MERGEYARD_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:9")
    assert connection_options.complete_repositories("") == []


def test_names_of_stored_servers_are_completed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert connection_options.complete_servers("") == []
    known = {name: StoredServer(f"https://{name}.example.com", "my_token") for name in ("work", "home")}
    file = write_servers(StoredServers("work", known))
    assert connection_options.complete_servers("w") == ["work"]
    file.write_text("broken")
    assert connection_options.complete_servers("") == connection_options.complete_queues("") == []


@pytest.mark.parametrize("text", ["1\u0663d", "\u0661d", "0d", "7", "1.5h"])
def test_an_age_has_a_unit_and_only_the_digits_0_to_9(text: str):
    with pytest.raises(typer.BadParameter, match="is not an age"):
        connection_options.parse_age(text)
