"""Names of queues in a shell: completed when the server tells them, and otherwise not at all."""

import pytest

from mergeyard.cli import completing


def test_names_are_offered_once_and_in_order():
    assert completing.beginning_with("a", ["ab", "b", "aa", "ab"]) == ["aa", "ab"]


@pytest.mark.parametrize("url", ["", "http://127.0.0.1:9"])
def test_without_a_server_nothing_is_offered(monkeypatch: pytest.MonkeyPatch, url: str):
    monkeypatch.setenv("MERGEYARD_URL", url)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    assert completing.repositories("") == []
    assert completing.branches("") == []


def test_with_a_proxy_that_cannot_be_spoken_with_nothing_is_offered(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MERGEYARD_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:9")
    assert completing.repositories("") == []
