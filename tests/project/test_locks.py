"""The lock files satisfy pyproject.toml and pin everything by version and hash; nothing else is installed."""

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

from tools.lock import LOWEST, PINNED_AND_HASHED, PROJECT_NAME, ROOT, RUN, TEST, Pin, entries, pins, requirement

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
DEPENDENCIES: list[str] = PROJECT["project"]["dependencies"]
REQUIRED: dict[Path, tuple[str, list[str]]] = {
    RUN: (f"{PROJECT_NAME} (pyproject.toml)", DEPENDENCIES),
    LOWEST: (f"{PROJECT_NAME} (pyproject.toml)", DEPENDENCIES),
    TEST: (f"{PROJECT_NAME} (pyproject.toml:test)", PROJECT["dependency-groups"]["test"]),
}

each_lock = pytest.mark.parametrize("lock", REQUIRED, ids=lambda lock: lock.stem)


def by_name(lock: Path) -> dict[str, Pin]:
    """Where pins differ by environment, the one that applies here."""
    return {pin.name: pin for pin in sorted(pins(lock), key=lambda pin: applies(pin, {}))}


def applies(pin: Pin, environment: dict[str, str]) -> bool:
    return not pin.marker or Marker(pin.marker).evaluate(environment)


def satisfies(pin: Pin, wanted: Requirement) -> bool:
    return wanted.specifier.contains(Version(pin.version)) and wanted.extras <= pin.extras


# Content of a lock


@each_lock
def test_every_entry_is_pinned_and_has_a_hash(lock: Path):
    found = [requirement(entry) for entry in entries(lock.read_text())]
    assert found
    assert [line for line in found if not PINNED_AND_HASHED.fullmatch(line)] == []


@each_lock
def test_lock_contains_only_entries_and_comments(lock: Path):
    text = lock.read_text()
    without_comments = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)
    assert "\n".join(entries(text)) == without_comments.rstrip("\n")


@each_lock
@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13", "3.14", "3.15"])
def test_package_is_pinned_once_for_each_python(lock: Path, python: str):
    environment = {"python_version": python, "python_full_version": f"{python}.0"}
    names = [pin.name for pin in pins(lock) if applies(pin, environment)]
    assert len(names) == len(set(names))


@each_lock
def test_no_two_packages_share_a_hash(lock: Path):
    hashes = [each for pin in pins(lock) for each in pin.hashes]
    assert len(hashes) == len(set(hashes))


@each_lock
def test_lock_names_no_host_and_no_local_path(lock: Path):
    assert re.findall(r"\S*://\S*|file:\S+|(?<!\S)[/~]\S+|--(?!hash)\S+", lock.read_text()) == []


def test_tests_use_the_versions_that_run_in_production():
    tested = by_name(TEST)
    assert [
        pin.name
        for pin in pins(RUN)
        if (pin.version, pin.hashes) != (tested[pin.name].version, tested[pin.name].hashes)
    ] == []


# Requirements


@each_lock
def test_lock_satisfies_every_requirement(lock: Path):
    locked = by_name(lock)
    wanted = [Requirement(line) for line in REQUIRED[lock][1]]
    assert [str(each) for each in wanted if not satisfies(locked[canonicalize_name(each.name)], each)] == []


@each_lock
def test_direct_requirements_in_the_lock_are_those_of_pyproject(lock: Path):
    project, wanted = REQUIRED[lock]
    direct = {pin.name for pin in pins(lock) if project in pin.required_by}
    assert direct == {canonicalize_name(Requirement(line).name) for line in wanted}


@each_lock
def test_every_pin_is_required_by_the_project_or_by_another_pin(lock: Path):
    locked = by_name(lock)
    known = {*locked, *(project for project, _ in REQUIRED.values())}
    assert {pin.name: pin.required_by - known for pin in locked.values() if pin.required_by - known} == {}
    assert [pin.name for pin in locked.values() if not pin.required_by] == []


def lower_bound(requirement: Requirement) -> Version:
    (bound,) = [Version(each.version) for each in requirement.specifier if each.operator == ">="]
    return bound


def test_lowest_versions_are_the_lower_bounds_of_the_requirements():
    bounds = {canonicalize_name(each.name): lower_bound(each) for each in map(Requirement, DEPENDENCIES)}
    locked = by_name(LOWEST)
    assert {name: Version(locked[name].version) for name in bounds} == bounds


# Installed packages


def test_only_locked_packages_are_installed():
    locked = {name: pin.version for name, pin in by_name(TEST).items()}
    installed = {canonicalize_name(each.name): each.version for each in distributions()}
    assert {name: version for name, version in installed.items() if locked.get(name) != version} == {}


def test_lock_satisfies_the_requirements_of_installed_packages():
    locked = by_name(TEST)
    for each in distributions():
        for line in each.requires or ():
            needed = Requirement(line)
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                assert satisfies(
                    locked[canonicalize_name(needed.name)], Requirement(f"{needed.name}{needed.specifier}")
                )


@pytest.mark.parametrize("name", ["tools/setup.sh", "Dockerfile"])
def test_installers_require_hashes_and_build_nothing(name: str):
    calls = re.findall(r"^.*(?:bin/pip install|\$install) .*$", (ROOT / name).read_text(), re.MULTILINE)
    assert calls
    assert [call for call in calls if "--require-hashes --only-binary :all: --requirement" not in call] == []
