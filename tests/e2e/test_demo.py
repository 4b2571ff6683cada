"""`mergeyard demo`: a process that runs a real server and removes everything at the end."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

TIMEOUT_S = 180


@contextmanager
def demo(folder: Path, *options: str) -> Generator[subprocess.Popen[str]]:
    """With its own temporary folder, which must be empty at the end."""
    process = subprocess.Popen(
        ["env", "--default-signal=INT", sys.executable, "-m", "mergeyard", "demo", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"TMPDIR": str(folder), "PYTHONUNBUFFERED": "1"},
    )
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=TIMEOUT_S)


def read_until(process: subprocess.Popen[str], text: str) -> None:
    assert process.stdout
    output = list[str]()
    for line in process.stdout:
        output.append(line)
        if text in line:
            return
    raise AssertionError("".join(output))


def address_of_server(folder: Path) -> str:
    (log,) = folder.glob("*/server.log")
    entries = (json.loads(line) for line in log.read_text().splitlines())
    return next(entry["url"] for entry in entries if entry["event"] == "listening")


@pytest.mark.long
def test_demo_has_the_expected_outcome_and_leaves_no_files(tmp_path: Path):
    with demo(tmp_path, "--exit") as process:
        output, _ = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, output
    assert "✓ All 12 pull requests have the expected outcome." in output
    assert "✓ The main branch passes unit and lint in a clean checkout." in output
    assert re.search(r"✓ Each of the \d+ landed commits has exactly the content that a run tested\.", output)
    assert "✓ No test branch is left over." in output
    assert "\x1b" not in output
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("order", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
def test_interrupt_stops_the_server_and_removes_the_folder(tmp_path: Path, order: signal.Signals):
    with demo(tmp_path) as process:
        read_until(process, "Testing")
        server = address_of_server(tmp_path)
        assert httpx.get(f"{server}/healthz").status_code == 200
        process.send_signal(order)
        output, _ = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 130, output
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{server}/healthz")


@pytest.mark.long
def test_demo_folder_can_be_kept(tmp_path: Path):
    with demo(tmp_path, "--keep") as process:
        read_until(process, "The queue resumes.")
    (folder,) = tmp_path.iterdir()
    assert {"repos", "data", "server.log", "token"} <= {each.name for each in folder.iterdir()}
