"""The demo as people start it: a process that runs a real server and leaves nothing behind."""

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

PATIENCE = 180


@contextmanager
def demo(folder: Path, *options: str) -> Generator[subprocess.Popen[str]]:
    """With a temporary folder of its own, in which nothing may be left."""
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
        process.communicate(timeout=PATIENCE)


def read_until(process: subprocess.Popen[str], words: str) -> None:
    assert process.stdout
    told = list[str]()
    for line in process.stdout:
        told.append(line)
        if words in line:
            return
    raise AssertionError("".join(told))


def address_of_server(folder: Path) -> str:
    (log,) = folder.glob("*/server.log")
    entries = (json.loads(line) for line in log.read_text().splitlines())
    return next(entry["url"] for entry in entries if entry["event"] == "listening")


def test_everything_comes_out_as_it_should_and_nothing_is_left_behind(tmp_path: Path):
    with demo(tmp_path, "--exit") as process:
        told, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, told
    assert "✓ All 12 pull requests ended as they should." in told
    assert "✓ The main branch is green: unit and lint pass in a clean checkout." in told
    assert re.search(r"✓ Each of the \d+ commits that landed has the very bytes that a run tested\.", told)
    assert "✓ No test branch is left over." in told
    assert "\x1b" not in told
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("order", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
def test_whoever_interrupts_it_ends_the_server_and_removes_the_folder(tmp_path: Path, order: signal.Signals):
    with demo(tmp_path) as process:
        read_until(process, "testing")
        server = address_of_server(tmp_path)
        assert httpx.get(f"{server}/healthz").status_code == 200
        process.send_signal(order)
        told, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, told
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{server}/healthz")


@pytest.mark.long
def test_its_folder_can_be_kept(tmp_path: Path):
    with demo(tmp_path, "--keep") as process:
        read_until(process, "The queue opens.")
    (folder,) = tmp_path.iterdir()
    assert {"repos", "data", "server.log", "token"} <= {each.name for each in folder.iterdir()}
