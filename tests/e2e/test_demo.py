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

import httpx2
import pytest

from tests.support.polling import eventually

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


def read_until(process: subprocess.Popen[str], text: str) -> str:
    assert process.stdout
    output = list[str]()
    for line in process.stdout:
        output.append(line)
        if text in line:
            return "".join(output)
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
    assert re.search(r"✓ Each of the \d+ merged commits has exactly the content that a run tested\.", output)
    assert "✓ No test branch is left over." in output
    assert "\x1b" not in output
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
@pytest.mark.parametrize("order", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
def test_interrupt_stops_the_server_and_removes_the_folder(tmp_path: Path, order: signal.Signals):
    with demo(tmp_path) as process:
        read_until(process, "Testing")
        server = address_of_server(tmp_path)
        assert httpx2.get(f"{server}/healthz").status_code == 200
        process.send_signal(order)
        output, _ = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 130, output
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(f"{server}/healthz")


@pytest.mark.long
def test_printed_sign_in_and_commands_work_until_the_user_stops_the_demo(tmp_path: Path):
    with demo(tmp_path) as process:
        introduction = read_until(process, "API token")
        closing = read_until(process, "The log of the server").partition("The server runs until you press Ctrl-C")[2]
        for text in (introduction, closing):
            sign_in(*re.findall(r"(?:Dashboard|API token for it): +(\S+)$", text, re.MULTILINE))
        commands = "".join(re.findall(r"^  (.+\n)", closing, re.MULTILINE))
        shell = subprocess.run(["bash", "-euc", commands], cwd="/", capture_output=True, text=True, check=False)
        assert (shell.returncode, shell.stderr) == (0, "")
        assert "#5 Give green tea away  Failed" in shell.stdout
        assert "Merge pull request #1: Put honey tea on the menu" in shell.stdout
        (repository,) = tmp_path.glob("*/repos/demo/shop.git")
        log = ["git", "--git-dir", str(repository), "log", "--oneline", "main"]
        eventually(lambda: b"Merge pull request #13: Take more time for the tests" in subprocess.check_output(log))
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=TIMEOUT_S)
    assert process.returncode in (0, 130)
    assert list(tmp_path.iterdir()) == []


def sign_in(page: str, token: str) -> None:
    """Without a session the page leads to the sign-in form; the printed token opens it."""
    with httpx2.Client(trust_env=False) as client:
        form = client.get(page)
        assert (form.status_code, form.next_request and form.next_request.url.path) == (303, "/sign-in")
        signed_in = client.post(f"{page.partition('/queues/')[0]}/sign-in", data={"token": token, "next": page})
        assert signed_in.status_code == 303
        assert "demo/shop" in client.get(page).text


@pytest.mark.long
def test_demo_folder_can_be_kept(tmp_path: Path):
    with demo(tmp_path, "--keep") as process:
        read_until(process, "The queue resumes.")
    (folder,) = tmp_path.iterdir()
    assert {"repos", "data", "server.log", "token"} <= {each.name for each in folder.iterdir()}
