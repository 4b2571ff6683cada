"""A mirror is damaged while a server works: no pull request fails, and the mirror is recreated automatically."""

from pathlib import Path

import pytest

from tests.faults import mirror_damage
from tests.faults.conftest import FaultySite, SiteFactory
from tests.faults.mirror_damage import Damage

pytestmark = pytest.mark.long

DAMAGES_OF_A_RUNNING_SERVER = (
    *(mirror_damage.truncate_objects, mirror_damage.cut_packs, mirror_damage.remove_objects, mirror_damage.break_refs),
    *(mirror_damage.break_config, mirror_damage.leave_locks, mirror_damage.remove_everything),
)


def mirror_of(site: FaultySite) -> Path:
    return site.server.folder / "data" / "mirrors" / "git.local" / "acme" / "app.git"


def parametrize_damage(damages: tuple[Damage, ...]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("damage", damages, ids=lambda damage: damage.__name__)


@parametrize_damage(DAMAGES_OF_A_RUNNING_SERVER)
def test_mirror_damaged_during_a_test_run(make_site: SiteFactory, damage: Damage):
    site = make_site(concurrency=3)
    site.ci.enabled = False
    early, late = site.open_pr({"a.txt": "1"}), site.open_pr({"b.txt": "1"})
    site.submit(early)
    site.wait_for("testing", early)
    damage(mirror_of(site))
    site.submit(late)
    site.ci.enabled = True
    site.wait_for("merged", early, late)
    assert site.server.logged_errors() == []


@parametrize_damage(DAMAGES_OF_A_RUNNING_SERVER)
def test_mirror_damaged_before_a_batch_lands(make_site: SiteFactory, damage: Damage):
    site = make_site(batch=True, batchingMinSize=3, mergeMethod="rebase")
    site.ci.enabled = False
    numbers = [site.open_pr({f"{name}.txt": "1"}) for name in "abc"]
    site.submit(*numbers)
    site.wait_for("testing", *numbers)
    damage(mirror_of(site))
    site.ci.enabled = True
    site.wait_for("merged", *numbers)
    assert site.server.logged_errors() == []


@parametrize_damage((mirror_damage.cut_packs, mirror_damage.leave_locks))
def test_mirror_damaged_repeatedly(make_site: SiteFactory, damage: Damage):
    site = make_site(mode="parallel", mergeMethod="squash")
    for name in "abc":
        number = site.open_pr({f"{name}.txt": "1"})
        site.upload_impacted_targets(number, name)
        site.submit(number)
        damage(mirror_of(site))
        site.eventually(lambda number=number: site.state(number) == "merged", 150)
