"""The Makefile explains itself, and the README names the two commands to start with."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = set(re.findall(r"^([a-z][\w-]*):(?!=)", MAKEFILE, re.MULTILINE))


def test_every_target_has_a_line_of_help():
    explained = re.findall(r"^([a-z-]+):.*## [A-Z].*\.$", MAKEFILE, re.MULTILINE)
    assert set(explained) == TARGETS


def test_no_target_is_mistaken_for_a_file():
    (phony,) = re.findall(r"^\.PHONY: ((?:.*\\\n)*.*)$", MAKEFILE, re.MULTILINE)
    assert set(phony.replace("\\\n", " ").split()) == TARGETS


def test_the_readme_names_the_two_commands_to_start_with():
    readme = (ROOT / "README.md").read_text()
    assert {"demo", "test"} <= TARGETS
    assert "make demo" in readme
    assert "make test" in readme
