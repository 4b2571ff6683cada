"""The examples in docs/reference/client.md work, one after the other, against a real server."""

import re
from pathlib import Path

import pytest

from tests.support.environment import ServerEnvironment, new_token
from tests.support.terminal import a_running_environment

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "client.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
PULLS = {"12": "a.txt", "13": "b.txt"}
WAITING = {"not_ready", "pending"}
"""States before a test run starts: no example waits for that."""


def test_every_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    with a_running_environment(tmp_path) as env:
        monkeypatch.setenv("MERGEYARD_TOKEN", new_token(env.server.config))
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        env.origin.branch("release", base="main")
        env.ci.enabled = False
        real = {documented: env.open_pr({file: "1"}) for documented, file in PULLS.items()}
        env.submit(real["13"])
        run_all(env, real)
        printed, landed = capsys.readouterr().out, env.submission(real["12"])["mergedSha"]
    assert "not_ready The queue does not know yet" in printed
    assert f"merged as {landed}" in printed
    assert " queue.created The queue was created." in printed
    assert "['merged', '" in printed
    assert "pr_not_in_queue" in printed
    assert "release of git.local/acme/app PAUSED Release freeze 5" in printed


def run_all(env: ServerEnvironment, real: dict[str, int]) -> None:
    names = dict[str, object]()
    for block in BLOCKS:
        code = block.replace("https://queue.example.com", env.server.url)
        code = code.replace("github.com/acme/app", "git.local/acme/app")
        code = re.sub(r"\b1[23]\b", lambda number: str(real[number[0]]), code)
        env.eventually(lambda: all(pull["state"] not in WAITING for pull in env.enqueued()))
        exec(compile(code, "docs/reference/client.md", "exec"), names)
        env.ci.enabled = env.ci.enabled or "report_status" in code
