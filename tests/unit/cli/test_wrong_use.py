"""Commands that are used wrongly say so before anybody is asked, and end with a code of their own."""

import re

import pytest

from tests.support.terminal import Terminal

NOWHERE = "http://127.0.0.1:9"
QUEUE = ("--repo", "git.local/acme/app", "--branch", "main")


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (("status",), "its number, or its branch with --head"),
        (("status", "x"), "x"),
        (("submit", "1", "--priority", "soon"), "soon is none: write urgent"),
        (("queue", "update", "--concurency", "3"), "--concurrency"),
        (("queue", "update", "--concurrency", "0"), "from 1 to 1000"),
        (("queue", "update", "--batch", "maybe"), "neither on nor off"),
        (("queue", "create"), "--repo host/owner/name --branch main"),
        (("queue", "show", "--repo", "app"), "write --repo host/owner/name"),
        (("queue", "show", "--queue", "git.local/acme/app"), "write --queue host/owner/name:branch"),
        (("queue", "show", "--queue", "app:main"), "write --repo host/owner/name"),
        (("runs", "--since", "soon"), "write 30m, 12h"),
        (("statsu", "1"), "status"),
        (("queue", "show", "--url", "queue.example.com"), "write it as https://queue.example.com"),
    ],
    ids=str,
)
def test_wrong_use_is_told_and_has_its_own_code(arguments: tuple[str, ...], advice: str):
    said = re.sub(r"[│\n ]+", " ", Terminal(NOWHERE, "my_token").refused(64, *arguments))
    assert advice in said


def test_what_is_not_set_is_asked_for():
    terminal = Terminal(NOWHERE, "my_token")
    terminal.environment["MERGEYARD_TOKEN"] = None
    assert "Set MERGEYARD_TOKEN to a token" in terminal.refused(64, "queue", "list")
    terminal.environment["MERGEYARD_URL"] = None
    assert "Set MERGEYARD_URL to where the service is" in terminal.refused(64, "queue", "list")


def test_a_proxy_that_cannot_be_spoken_with_is_named():
    terminal = Terminal(NOWHERE, "my_token")
    terminal.environment["ALL_PROXY"] = "socks5://127.0.0.1:9"
    assert "unset ALL_PROXY" in terminal.refused(64, "status", "5", "--wait", *QUEUE)
