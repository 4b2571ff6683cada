"""The pages about security and promises name existing files, tests and commands, and have the right numbers."""

import re
from pathlib import Path

import pytest

from tests.model import planted, test_worlds
from tests.simulation import planted as service
from tests.simulation import test_worlds as service_worlds
from tests.support.promises import PROMISES

ROOT = Path(__file__).parents[2]
SECURITY = (ROOT / "docs" / "operate" / "security.md").read_text()
PICTURE = (ROOT / "docs" / "pictures" / "boundaries.svg").read_text()
BOUNDARIES = dict(re.findall(r"^### (\d+)\. [^\n]+\n(.*?)(?=^##|\Z)", SECURITY, re.MULTILINE | re.DOTALL))
CONTROLS = re.findall(r"^\| (.+) \| (.+) \| (.*`tests/.+`) \|$", SECURITY, re.MULTILINE)

each_boundary = pytest.mark.parametrize("boundary", BOUNDARIES)


def code_spans(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_boundaries_are_numbered_and_each_is_in_the_picture():
    assert list(BOUNDARIES) == [str(number) for number in range(1, 15)]
    assert set(re.findall(r'class="mid small number">(\d+)<', PICTURE)) == BOUNDARIES.keys()


@each_boundary
def test_boundary_has_crossings_harm_controls_and_remaining_risk(boundary: str):
    text = BOUNDARIES[boundary]
    parts = [text.find(part) for part in ("**Crosses it:**", "**Harm:**", "| control |", "**Left over:**")]
    assert parts == sorted(parts)
    assert parts[0] >= 0


@pytest.mark.parametrize("path", sorted({path for _, where, _ in CONTROLS for path in code_spans(where)}))
def test_file_of_a_control_exists(path: str):
    assert any((root / path).is_file() for root in (ROOT, ROOT / "src" / "mergeyard"))


@pytest.mark.parametrize("named", sorted({named for _, _, shown_by in CONTROLS for named in code_spans(shown_by)}))
def test_test_of_a_control_exists(named: str):
    path, _, test = named.partition("::")
    assert re.search(rf"def {test}\(" if test else r"def test_", (ROOT / path).read_text())


def test_every_control_names_a_file_and_a_test():
    assert [control for control, where, shown_by in CONTROLS if not code_spans(where) or not code_spans(shown_by)] == []
    assert len(CONTROLS) == sum(text.count("\n| ") - 1 for text in BOUNDARIES.values())


PROMISES_PAGE = (Path(__file__).parents[2] / "docs" / "understand" / "promises.md").read_text()
MAKEFILE = (Path(__file__).parents[2] / "Makefile").read_text()


def test_promises_are_numbered_in_order():
    assert re.findall(r"^\| ([SL]\d+) \|", PROMISES_PAGE, re.MULTILINE) == [
        *(f"S{number}" for number in range(1, 15)),
        *(f"L{number}" for number in range(1, 8)),
    ]


def test_page_names_the_promises_that_are_checked_on_real_servers():
    checked = [promise.__name__.partition("_")[0].upper() for promise in PROMISES]
    assert checked == [*(f"S{number}" for number in range(1, 11)), "S14"]
    assert "S1 to S10 and S14 are functions" in PROMISES_PAGE


def test_page_has_the_number_of_worlds_and_planted_bugs():
    assert f"{test_worlds.WORLDS:,} worlds, {test_worlds.QUICK_WORLDS:,} of them every day." in PROMISES_PAGE
    assert f"| {len(planted.BUGS)} wrong engines," in PROMISES_PAGE
    assert f"{service_worlds.WORLDS:,} worlds, {service_worlds.QUICK_WORLDS:,} of them every day." in PROMISES_PAGE
    assert f"And {len(service.BUGS)} wrong services:" in PROMISES_PAGE


def test_tests_named_by_the_promises_page_exist():
    named = re.findall(r"`(tests/[a-z_/.]+)`", PROMISES_PAGE)
    assert named
    assert [path for path in named if not (Path(__file__).parents[2] / path).exists()] == []


def test_make_targets_named_by_the_promises_page_exist():
    called = re.findall(r"`make ([a-z-]+)", PROMISES_PAGE)
    assert called
    assert [target for target in called if not re.search(rf"^{target}:", MAKEFILE, re.MULTILINE)] == []
