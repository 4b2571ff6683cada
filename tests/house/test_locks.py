"""The locks pin every package by version and hash, and know nothing of the machine that wrote them."""

import re
from pathlib import Path

import pytest

LOCKS = Path(__file__).parents[2] / "requirements"
PINNED_AND_HASHED = re.compile(r"[\w.-]+(\[[\w, -]+\])?==[\w.]+( ; [^\\]+)?( --hash=sha256:[0-9a-f]{64})+")

every_lock = pytest.mark.parametrize("name", ["run.txt", "test.txt"])


def requirements(name: str) -> list[str]:
    lines = (LOCKS / name).read_text().splitlines()
    without_comments = "\n".join(line for line in lines if not line.lstrip().startswith("#"))
    return re.sub(r" *\\\n +", " ", without_comments).splitlines()


def pins(name: str) -> set[str]:
    """What is installed, without the markers that say where it is needed."""
    return {requirement.partition(" ")[0] for requirement in requirements(name)}


@every_lock
def test_every_requirement_is_pinned_and_has_a_hash(name: str):
    assert requirements(name)
    assert [line for line in requirements(name) if not PINNED_AND_HASHED.fullmatch(line)] == []


@every_lock
def test_a_lock_names_no_host_and_no_path_of_a_machine(name: str):
    assert re.findall(r"\S*://\S*|file:\S+|(?<!\S)[/~]\S+|--(?!hash)\S+", (LOCKS / name).read_text()) == []


def test_what_is_tested_is_what_runs():
    assert pins("run.txt") <= pins("test.txt")
