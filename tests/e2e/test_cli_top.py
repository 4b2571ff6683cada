"""The live view of a queue on a real terminal: it moves, resizes, goes on without the server, and leaves on a key."""

import os
import sys
from pathlib import Path

from tests.support.premises import Premises, new_token
from tests.support.screen import a_screen
from tests.support.terminal import a_queue_at_work

OTHER_SCREEN, OWN_SCREEN = "\x1b[?1049h", "\x1b[?1049l"
TOP = [sys.executable, "-m", "mergeyard", "top"]


def test_a_queue_is_watched_at_work(tmp_path: Path):
    with a_queue_at_work(tmp_path) as premises:
        watch(premises)


def watch(premises: Premises) -> None:
    premises.ci.working = False
    number = premises.open_pr({"a.txt": "1"}, title="Count the sheep")
    token, url = new_token(premises.server.config), premises.server.url
    given = {"MERGEYARD_URL": url, "MERGEYARD_TOKEN": token, "TERM": "xterm-256color", "NO_PROXY": "127.0.0.1"}
    with a_screen(TOP, os.environ | given) as screen:
        screen.shows("Nobody is in the queue.")
        premises.submit(number)
        screen.shows("0/2 checks")
        assert "Count the sheep" in screen.written
        screen.resize(60, 12)
        screen.shows("…")
        premises.ci.working = True
        premises.wait_for("merged", number)
        screen.shows("Concluded")
        premises.server.stop()
        screen.shows("The server does not answer")
        screen.press("x")
        screen.press("q")
        assert screen.ended() == 0
        assert screen.written.count(OTHER_SCREEN) == screen.written.count(OWN_SCREEN) == 1
        assert screen.settings == screen.before
