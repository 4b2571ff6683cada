"""Every target of the Makefile has a line of help, and the README names the two most important ones."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text()
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
