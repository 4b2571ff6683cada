"""A mirror breaks under a server that works: nobody is blamed, and the mirror is made anew without a hand."""

from pathlib import Path

import pytest

from tests.surroundings import breaking
from tests.surroundings.breaking import Break
from tests.surroundings.conftest import Found, Site

pytestmark = pytest.mark.long

AS_A_SERVER_MEETS_THEM = (
    *(breaking.truncate_objects, breaking.cut_packs, breaking.remove_objects, breaking.break_refs),
    *(breaking.break_config, breaking.leave_locks, breaking.remove_everything),
)


def mirror_of(site: Site) -> Path:
    return site.server.folder / "data" / "mirrors" / "git.local" / "acme" / "app.git"


def every_way(ways: tuple[Break, ...]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("way", ways, ids=lambda way: way.__name__)


@every_way(AS_A_SERVER_MEETS_THEM)
def test_a_mirror_that_breaks_while_something_is_tested(found: Found, way: Break):
    site = found(concurrency=3)
    site.ci.working = False
    early, late = site.open_pr({"a.txt": "1"}), site.open_pr({"b.txt": "1"})
    site.submit(early)
    site.wait_for("testing", early)
    way(mirror_of(site))
    site.submit(late)
    site.ci.working = True
    site.wait_for("merged", early, late)
    assert site.server.complaints() == []


@every_way(AS_A_SERVER_MEETS_THEM)
def test_a_mirror_that_breaks_before_several_land_together(found: Found, way: Break):
    site = found(batch=True, batchingMinSize=3, mergeMethod="rebase")
    site.ci.working = False
    numbers = [site.open_pr({f"{name}.txt": "1"}) for name in "abc"]
    site.submit(*numbers)
    site.wait_for("testing", *numbers)
    way(mirror_of(site))
    site.ci.working = True
    site.wait_for("merged", *numbers)
    assert site.server.complaints() == []


@every_way((breaking.cut_packs, breaking.leave_locks))
def test_a_mirror_that_breaks_again_and_again(found: Found, way: Break):
    site = found(mode="parallel", mergeMethod="squash")
    for name in "abc":
        number = site.open_pr({f"{name}.txt": "1"})
        site.upload_targets(number, name)
        site.submit(number)
        way(mirror_of(site))
        site.eventually(lambda number=number: site.state(number) == "merged", 150)
