"""The pages about security and promises name existing files, tests and commands, and have the right numbers."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.model import planted
from tests.simulation import planted as service
from tests.support.promises import PROMISES

ROOT = Path(__file__).parents[2]
SECURITY = (ROOT / "docs" / "operate" / "security.md").read_text()
PICTURE = (ROOT / "docs" / "pictures" / "boundaries.svg").read_text()
BOUNDARIES = dict(re.findall(r"^### (\d+)\. [^\n]+\n(.*?)(?=^##|\Z)", SECURITY, re.MULTILINE | re.DOTALL))
CONTROLS: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_name("security_controls.toml").read_text())
"""Every control with its code and its tests. The first part of its number is the boundary."""

each_boundary = pytest.mark.parametrize("boundary", BOUNDARIES)


def test_boundaries_are_numbered_and_each_is_in_the_picture():
    assert list(BOUNDARIES) == [str(number) for number in range(1, 15)]
    assert set(re.findall(r'class="mid small number">(\d+)<', PICTURE)) == BOUNDARIES.keys()


@each_boundary
def test_boundary_has_harm_controls_and_remaining_risk(boundary: str):
    assert re.findall(r"\*\*([^*]+):\*\*", BOUNDARIES[boundary]) == ["Harm", "Controls", "Remaining risk"]


@each_boundary
def test_boundary_has_controls_that_are_numbered_in_order(boundary: str):
    numbers = [number for number in CONTROLS if number.partition(".")[0] == boundary]
    assert numbers
    assert numbers == [f"{boundary}.{number}" for number in range(1, len(numbers) + 1)]


def test_every_control_belongs_to_a_boundary():
    assert {number.partition(".")[0] for number in CONTROLS} == BOUNDARIES.keys()


@pytest.mark.parametrize("number", CONTROLS)
def test_control_is_a_sentence_and_names_its_code_and_its_tests(number: str):
    control = CONTROLS[number]
    assert control.keys() == {"control", "code", "tests"}
    assert control["control"].endswith(".")
    assert control["code"]
    assert control["tests"]


@pytest.mark.parametrize("path", sorted({path for control in CONTROLS.values() for path in control["code"]}))
def test_code_of_a_control_exists(path: str):
    assert any((root / path).is_file() for root in (ROOT, ROOT / "src" / "mergeyard"))


@pytest.mark.parametrize("named", sorted({named for control in CONTROLS.values() for named in control["tests"]}))
def test_test_of_a_control_exists(named: str):
    path, _, test = named.partition("::")
    assert re.search(rf"def {test}\(" if test else r"def test_", (ROOT / path).read_text())


PROMISES_PAGE = (ROOT / "docs" / "understand" / "promises.md").read_text()
TESTING_PAGE = (ROOT / "docs" / "contribute" / "testing.md").read_text()
MAKEFILE = (ROOT / "Makefile").read_text()
PROMISE_NUMBERS = [*(f"S{number}" for number in range(1, 17)), *(f"L{number}" for number in range(1, 8))]


def test_promises_are_numbered_in_order():
    assert re.findall(r"^\| ([SL]\d+) \|", PROMISES_PAGE, re.MULTILINE) == PROMISE_NUMBERS


def test_testing_page_names_tests_for_every_promise():
    cells = ", ".join(re.findall(r"^\| ([SL]\d[^|]*) \| `tests/", TESTING_PAGE, re.MULTILINE))
    shown = set[str]()
    for first, last in re.findall(r"([SL]\d+)(?:–([SL]\d+))?", cells):
        shown.update(PROMISE_NUMBERS[PROMISE_NUMBERS.index(first) : PROMISE_NUMBERS.index(last or first) + 1])
    assert shown == set(PROMISE_NUMBERS)


def test_testing_page_names_the_promises_that_are_checked_on_real_servers():
    checked = [promise.__name__.partition("_")[0].upper() for promise in PROMISES]
    assert checked == [*(f"S{number}" for number in range(1, 11)), "S14", "S16"]
    assert "S1 to S10, S14 and S16 are functions" in TESTING_PAGE


def test_testing_page_has_the_number_of_planted_bugs():
    assert f"| {len(planted.BUGS)} wrong engines," in TESTING_PAGE
    assert f"And {len(service.BUGS)} wrong services:" in TESTING_PAGE


def test_tests_named_by_the_testing_page_exist():
    named = re.findall(r"`(tests/[a-z_/.]+)`", TESTING_PAGE)
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_make_targets_named_by_the_testing_page_exist():
    called = re.findall(r"`make ([a-z-]+)", TESTING_PAGE)
    assert called
    assert [target for target in called if not re.search(rf"^{target}:", MAKEFILE, re.MULTILINE)] == []
