"""Shell completion of repositories and branches, with names from the server."""

import pytest

from mergeyard.cli import connection_options


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
