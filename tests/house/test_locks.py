"""The locks fit what we ask for and pin all of it by version and hash; nothing is installed that they do not name."""

import re
import tomllib
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tools.lock import OURSELVES, PINNED_AND_HASHED, ROOT, RUN, TEST, Pin, entries, pins, requirement

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
ASKED_FOR: dict[Path, tuple[str, list[str]]] = {
    RUN: (f"{OURSELVES} (pyproject.toml)", PROJECT["project"]["dependencies"]),
    TEST: (f"{OURSELVES} (pyproject.toml:test)", PROJECT["dependency-groups"]["test"]),
}

every_lock = pytest.mark.parametrize("lock", ASKED_FOR, ids=lambda lock: lock.stem)


def by_name(lock: Path) -> dict[str, Pin]:
    """Of those that differ from place to place, the one that counts here."""
    return {pin.name: pin for pin in sorted(pins(lock), key=lambda pin: counts(pin, {}))}


def counts(pin: Pin, where: dict[str, str]) -> bool:
    return not pin.where or Marker(pin.where).evaluate(where)


def fits(pin: Pin, asked: Requirement) -> bool:
    return asked.specifier.contains(Version(pin.version)) and asked.extras <= pin.extras


# What a lock says


@every_lock
def test_every_requirement_is_pinned_and_has_a_hash(lock: Path):
    found = [requirement(entry) for entry in entries(lock.read_text())]
    assert found
    assert [line for line in found if not PINNED_AND_HASHED.fullmatch(line)] == []


@every_lock
def test_nothing_stands_in_a_lock_beside_its_requirements(lock: Path):
    text = lock.read_text()
    beside = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)
    assert "\n".join(entries(text)) == beside.rstrip("\n")


@every_lock
@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13", "3.14"])
def test_on_every_python_a_package_is_pinned_once(lock: Path, python: str):
    where = {"python_version": python, "python_full_version": f"{python}.0"}
    names = [pin.name for pin in pins(lock) if counts(pin, where)]
    assert len(names) == len(set(names))


@every_lock
def test_no_hash_stands_for_two_packages(lock: Path):
    hashes = [each for pin in pins(lock) for each in pin.hashes]
    assert len(hashes) == len(set(hashes))


@every_lock
def test_a_lock_names_no_host_and_no_path_of_a_machine(lock: Path):
    assert re.findall(r"\S*://\S*|file:\S+|(?<!\S)[/~]\S+|--(?!hash)\S+", lock.read_text()) == []


def test_what_is_tested_is_what_runs():
    tested = by_name(TEST)
    assert [
        pin.name
        for pin in pins(RUN)
        if (pin.version, pin.hashes) != (tested[pin.name].version, tested[pin.name].hashes)
    ] == []


# What we ask for


@every_lock
def test_a_lock_has_what_is_asked_for_in_a_version_that_fits(lock: Path):
    locked = by_name(lock)
    asked = [Requirement(line) for line in ASKED_FOR[lock][1]]
    assert [str(each) for each in asked if not fits(locked[canonicalize_name(each.name)], each)] == []


@every_lock
def test_whatever_a_lock_calls_asked_for_is_asked_for(lock: Path):
    us, asked = ASKED_FOR[lock]
    called = {pin.name for pin in pins(lock) if us in pin.wanted_by}
    assert called == {canonicalize_name(Requirement(line).name) for line in asked}


@every_lock
def test_everything_is_wanted_by_us_or_by_something_in_the_lock(lock: Path):
    locked = by_name(lock)
    known = {*locked, *(us for us, _ in ASKED_FOR.values())}
    assert {pin.name: pin.wanted_by - known for pin in locked.values() if pin.wanted_by - known} == {}
    assert [pin.name for pin in locked.values() if not pin.wanted_by] == []


# What is installed


def test_nothing_is_installed_that_the_lock_does_not_name():
    locked = {name: pin.version for name, pin in by_name(TEST).items()}
    there = {canonicalize_name(each.name): each.version for each in distributions()}
    assert {name: version for name, version in there.items() if locked.get(name) != version}.keys() == {OURSELVES}


def test_what_is_installed_finds_all_that_it_needs_in_the_lock():
    locked = by_name(TEST)
    for each in distributions():
        for line in each.requires or ():
            needed = Requirement(line)
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                assert fits(locked[canonicalize_name(needed.name)], Requirement(f"{needed.name}{needed.specifier}"))


def test_every_installer_is_told_to_ask_for_hashes_and_to_build_nothing():
    """But for ourselves, and what is needed to build that is in the lock."""
    for name in ("tools/setup.sh", "Dockerfile"):
        calls = re.findall(r"^.*(?:bin/pip install|\$install) .*$", (ROOT / name).read_text(), re.MULTILINE)
        from_a_lock = [call for call in calls if "--require-hashes --only-binary :all: --requirement" in call]
        ourselves = [call for call in calls if "--no-deps --no-build-isolation --editable ." in call]
        assert from_a_lock
        assert len(calls) == len(from_a_lock) + len(ourselves)
