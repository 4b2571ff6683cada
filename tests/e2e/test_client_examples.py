"""The examples on the client's page do what the page says, one after the other, with a real server."""

import re
from pathlib import Path

import pytest

from tests.support.premises import Premises, new_token
from tests.support.terminal import a_queue_at_work

PAGE = (Path(__file__).parents[2] / "docs" / "client.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
PULLS = {"12": "a.txt", "13": "b.txt"}
WAITING = {"not_ready", "pending"}
"""For a test run to start: no example waits for that."""


def test_every_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    with a_queue_at_work(tmp_path) as premises:
        monkeypatch.setenv("MERGEYARD_TOKEN", new_token(premises.server.config))
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        premises.origin.branch("release", upon="main")
        premises.ci.working = False
        real = {told: premises.open_pr({file: "1"}) for told, file in PULLS.items()}
        premises.submit(real["13"])
        run_all(premises, real)
        printed, landed = capsys.readouterr().out, premises.pull(real["12"])["mergedSha"]
    assert "not_ready The host has not" in printed
    assert f"landed as {landed}" in printed
    assert " queue.created The queue was created." in printed
    assert "['merged', '" in printed
    assert "tests_not_running" in printed
    assert "release of git.local/acme/app PAUSED 5" in printed


def run_all(premises: Premises, real: dict[str, int]) -> None:
    names = dict[str, object]()
    for block in BLOCKS:
        code = block.replace("https://queue.example.com", premises.server.url)
        code = code.replace("github.com/acme/app", "git.local/acme/app")
        code = re.sub(r"\b1[23]\b", lambda number: str(real[number[0]]), code)
        premises.eventually(lambda: all(pull["state"] not in WAITING for pull in premises.enqueued()))
        exec(compile(code, "docs/client.md", "exec"), names)
        premises.ci.working = premises.ci.working or "report_status" in code
