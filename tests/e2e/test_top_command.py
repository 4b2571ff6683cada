"""`mergeyard top` on a real terminal: it updates, resizes, survives a server outage, and obeys keys."""

import os
import sys
from pathlib import Path

import pytest

from tests.support.environment import ServerEnvironment, new_token
from tests.support.terminal import a_running_environment, a_screen

ARROW_RIGHT = "\x1b[C"
OTHER_SCREEN, OWN_SCREEN = "\x1b[?1049h", "\x1b[?1049l"
TOP = [sys.executable, "-m", "mergeyard", "top"]


@pytest.mark.long
def test_top_shows_a_working_queue(tmp_path: Path):
    with a_running_environment(tmp_path) as env:
        run_top(env)


def run_top(env: ServerEnvironment) -> None:
    env.ci.enabled = False
    number = env.open_pr({"a.txt": "1"}, title="Count the sheep")
    env.origin.branch("stable", base="main")
    env.api.post("createQueue", targetBranch="stable")
    token, url = new_token(env.server.config), env.server.url
    given = {"MERGEYARD_URL": url, "MERGEYARD_TOKEN": token, "TERM": "xterm-256color", "NO_PROXY": "127.0.0.1"}
    with a_screen(TOP, os.environ | given) as screen:
        screen.wait_for_text("The queue is empty.")
        env.submit(number)
        screen.wait_for_text("0/2 checks")
        assert "Count the sheep" in screen.output
        screen.resize(60, 12)
        screen.wait_for_text("…")
        env.ci.enabled = True
        env.wait_for("merged", number)
        screen.wait_for_text("Finished")
        screen.press("?")
        screen.wait_for_text("previous queue")
        screen.press("?")
        screen.wait_for_text("Finished")
        screen.press(ARROW_RIGHT)
        screen.wait_for_text("(2 of 2)")
        assert "stable of git.local/acme/app" in screen.output
        screen.press("\t")
        screen.wait_for_text("(1 of 2)")
        env.server.stop()
        screen.wait_for_text("The server does not respond")
        screen.press("x")
        screen.press("q")
        assert screen.wait_for_exit() == 0
        assert screen.output.count(OTHER_SCREEN) == screen.output.count(OWN_SCREEN) == 1
        assert screen.settings == screen.initial_settings
