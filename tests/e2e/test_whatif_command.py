"""`mergeyard whatif` and `replayQueue`, asked of a real server about what really happened to it."""

from pathlib import Path

import pytest

from tests.support.api import Refused
from tests.support.premises import Premises, new_token
from tests.support.terminal import Terminal, a_queue_at_work


def two_merged_and_one_failed(premises: Premises) -> None:
    good = [premises.open_pr({"a.txt": "1"}), premises.open_pr({"b.txt": "1"})]
    premises.submit(*good)
    premises.wait_for("merged", *good)
    bad = premises.open_pr({"bad": "1"})
    premises.submit(bad)
    premises.wait_for("failed", bad)


def test_a_queue_that_did_something_is_replayed(tmp_path: Path):
    with a_queue_at_work(tmp_path, concurrency=1) as premises:
        terminal = Terminal(premises.server.url, new_token(premises.server.config))
        assert "Nothing merged in this time: choose a longer period" in terminal.done("whatif")
        two_merged_and_one_failed(premises)
        told = terminal.done("whatif", "--since", "1d", "--set", "concurrency=4", "--set", "batch=on", "--price", "1")
        assert told.startswith("3 pull requests since ")
        assert "\nconcurrency 1 → 4\nbatch off → on\n" in told
        assert "\ncost  " in told
        assert "What this would do is hardly known.\n  Only 2 pull requests merged in this time" in told
        answered = terminal.answered("whatif", "--set", "concurrency=4")
        assert (answered["asItWas"]["merged"], answered["asItWas"]["failed"]) == (2, 1)
        assert answered["withTheChange"]["merged"] == 2
        assert answered["changes"] == [{"setting": "concurrency", "now": 1, "wished": 4}]
        assert premises.api.post("getQueue")["concurrency"] == 1


def test_what_no_history_tells_is_refused(tmp_path: Path):
    with a_queue_at_work(tmp_path) as premises:
        terminal = Terminal(premises.server.url, new_token(premises.server.config))
        assert "mergeMethod is no setting that can be replayed" in terminal.refused(
            64, "whatif", "--set", "mergeMethod=squash"
        )
        with pytest.raises(Refused, match="no such setting"):
            premises.api.post("replayQueue", mergeMethod="squash")
        with pytest.raises(Refused, match="concurrency"):
            premises.api.post("replayQueue", concurrency=0)
