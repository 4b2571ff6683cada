"""The page of promises counts what there is, and names every promise that real servers are held to."""

import re
from pathlib import Path

from tests.model import planted, test_worlds
from tests.simulation import planted as service
from tests.simulation import test_worlds as service_worlds
from tests.support.promises import PROMISES

PAGE = (Path(__file__).parents[2] / "docs" / "promises.md").read_text()
MAKEFILE = (Path(__file__).parents[2] / "Makefile").read_text()


def test_every_promise_has_its_number_in_order():
    assert re.findall(r"^\| ([SL]\d+) \|", PAGE, re.MULTILINE) == [
        *(f"S{number}" for number in range(1, 15)),
        *(f"L{number}" for number in range(1, 8)),
    ]


def test_the_page_says_which_promises_real_servers_are_held_to():
    held = [promise.__name__.partition("_")[0].upper() for promise in PROMISES]
    assert held == [*(f"S{number}" for number in range(1, 11)), "S14"]
    assert "S1 to S10 and S14 are functions" in PAGE


def test_worlds_and_planted_bugs_are_counted():
    assert f"{test_worlds.WORLDS:,} worlds, {test_worlds.EVERY_DAY:,} of them every day." in PAGE
    assert f"| {len(planted.BUGS)} wrong engines," in PAGE
    assert f"{service_worlds.WORLDS:,} worlds, {service_worlds.EVERY_DAY:,} of them every day." in PAGE
    assert f"And {len(service.BUGS)} wrong services:" in PAGE


def test_every_test_on_the_page_is_there():
    named = re.findall(r"`(tests/[a-z_/.]+)`", PAGE)
    assert named
    assert [place for place in named if not (Path(__file__).parents[2] / place).exists()] == []


def test_every_command_on_the_page_is_there():
    called = re.findall(r"`make ([a-z-]+)", PAGE)
    assert called
    assert [target for target in called if not re.search(rf"^{target}:", MAKEFILE, re.MULTILINE)] == []
