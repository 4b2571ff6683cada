"""Every target of the Makefile has a line of help. Pages name only targets that exist, and the README the two most
important ones."""

import re
from pathlib import Path

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
