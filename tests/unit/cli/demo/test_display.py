"""The diagram of the queue, rendered from responses of the server."""

import sys
from pathlib import Path

import pytest

from mergeyard.cli.demo.display import find_own_command, render_diagram
from tests.support.demo import a_progress, a_submission


def test_an_empty_queue_shows_only_its_branch():
    assert render_diagram(a_progress()).plain == "main"


def test_pull_requests_of_one_run_are_shown_together_in_queue_order():
    progress = a_progress(
        a_submission(1, "testing", testRunId="b", position=3),
        a_submission(2, "testing", testRunId="b", position=2),
        a_submission(3, "tests_passed", testRunId="a", position=1),
    )
    assert render_diagram(progress).plain == "main ← 3✓ ← 2+1…"


def test_a_bisection_is_shown_apart_from_the_active_batches():
    progress = a_progress(
        a_submission(1, "testing", testRunId="a", position=1),
        a_submission(2, "testing", testRunId="b", position=2),
        a_submission(3, "pending_failure", testRunId="c", position=3),
        bisections=frozenset({"b"}),
    )
    assert render_diagram(progress).plain == "main ← 1… ⋔ 2…  3✗"


def test_waiting_pull_requests_are_listed_apart_and_concluded_ones_are_left_out():
    progress = a_progress(
        a_submission(1, "pending"), a_submission(2, "not_ready"), a_submission(3, "merged"), a_submission(4, "pending")
    )
    assert render_diagram(progress).plain == "main   waiting: 1 4   not ready: 2"


# The command that the user repeats


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "my programs" / "mergeyard"
    path.parent.mkdir()
    path.touch(0o755)
    monkeypatch.setattr(sys, "argv", [str(path), "demo"])
    monkeypatch.setenv("PATH", str(tmp_path))
    return path


def test_command_outside_of_path_is_printed_with_its_folder(script: Path):
    assert find_own_command() == f"'{script}'"


def test_command_on_path_is_printed_by_its_name(script: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(script.parent))
    assert find_own_command() == "mergeyard"


def test_another_command_of_the_same_name_on_path_is_not_taken_for_it(script: Path):
    (script.parents[1] / "mergeyard").touch(0o755)
    assert find_own_command() == f"'{script}'"


def test_module_is_printed_with_its_python(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "argv", ["src/mergeyard/__main__.py", "demo"])
    monkeypatch.setattr(sys, "executable", "/opt/python")
    assert find_own_command() == "/opt/python -m mergeyard"
