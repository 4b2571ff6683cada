"""Every target of the Makefile has a line of help. Pages name only targets that exist, and the README the two most
important ones."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.support.violations import FILE_VARIABLE, assert_kept

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text()
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "changes").glob("*.md")]
TARGETS = set(re.findall(r"^([a-z][\w-]*):(?!=)", MAKEFILE, re.MULTILINE))


def test_every_target_has_a_line_of_help():
    explained = re.findall(r"^([a-z-]+):.*## [A-Z].*\.$", MAKEFILE, re.MULTILINE)
    assert set(explained) == TARGETS


def test_every_target_is_phony():
    (phony,) = re.findall(r"^\.PHONY: ((?:.*\\\n)*.*)$", MAKEFILE, re.MULTILINE)
    assert set(phony.replace("\\\n", " ").split()) == TARGETS


def test_readme_names_make_demo_and_make_test():
    readme = (ROOT / "README.md").read_text()
    assert {"demo", "test"} <= TARGETS
    assert "make demo" in readme
    assert "make test" in readme


def test_pages_name_only_targets_that_exist():
    texts = {
        page: "\n".join(re.findall(r"`[^`]+`|^```.*?^```", page.read_text(), re.MULTILINE | re.DOTALL))
        for page in PAGES
    }
    named = {
        (page.name, target) for page, text in texts.items() for target in re.findall(r"\bmake ([a-z][a-z-]+)", text)
    }
    assert {(page, target) for page, target in named if target not in TARGETS} == set()


def make(target: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    command = ["make", "--file", str(ROOT / "Makefile"), "--directory", str(folder), target]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_broken_promise_decides_although_its_test_passes_when_it_is_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (named,) = re.findall(rf"^ci: export {FILE_VARIABLE} := \$\(CURDIR\)/(.*)$", MAKEFILE, re.MULTILINE)
    monkeypatch.setenv(FILE_VARIABLE, str(tmp_path / named))
    assert_kept([])
    assert make("kept", tmp_path).returncode == 0
    with pytest.raises(AssertionError):
        assert_kept(["s16: a file is missing"])
    assert_kept([])
    decided = make("kept", tmp_path)
    assert decided.returncode != 0
    assert "s16: a file is missing" in decided.stdout


def test_a_part_of_ci_that_is_out_of_time_hides_no_broken_promise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The harness found it before it was stopped."""
    (tmp_path / "part.mk").write_text(
        f"include {ROOT / 'Makefile'}\n"
        "part:\n\t@echo 0 >.ci-started\n\t$(call within,1,sh -c 'echo s16 >>$$MERGEYARD_VIOLATIONS; exit 124')\n"
    )
    monkeypatch.setenv(FILE_VARIABLE, str(tmp_path / ".ci-violations"))
    command = ["make", "--file", "part.mk", "CI_MINUTES=99999999", "part"]
    played = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "NOT FINISHED" in played.stdout
    assert (tmp_path / ".ci-violations").read_text() == "s16\ns16\n"
    assert make("kept", tmp_path).returncode != 0
