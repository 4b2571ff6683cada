"""A queue on a Git host with an API, in a repository whose objects are named by SHA-256. GitHub has none of these."""

import shutil
from pathlib import Path

import pytest

from mergeyard.domain.config import Config, LandingMethod, MergeMethod
from mergeyard.domain.ids import SHA256, SHA256_DIGITS
from mergeyard.ports.external import Clock
from tests.support.asynchronous import asynchronous
from tests.support.forge_drivers.driver import ForgeDriver, MakeForgeDriver
from tests.support.forge_drivers.gitea import GiteaDriver
from tests.support.forge_drivers.gitlab import GitlabDriver
from tests.support.forge_scenario import a_forge_scenario
from tests.support.repositories import Origin

METHODS = [
    Config(merge_method=MergeMethod.MERGE_COMMIT),
    Config(merge_method=MergeMethod.SQUASH),
    Config(merge_method=MergeMethod.REBASE),
    Config(merge_method=MergeMethod.MERGE_COMMIT, landing=LandingMethod.PROVIDER_MERGE),
]


def in_sha256(make_forge: MakeForgeDriver) -> MakeForgeDriver:
    def make(folder: Path, clock: Clock) -> ForgeDriver:
        forge = make_forge(folder, clock)
        shutil.rmtree(forge.origin.path)
        Origin.create(forge.origin.path, SHA256)
        forge.origin.object_format = SHA256
        return forge

    return make


@pytest.mark.parametrize(
    ("make_forge", "config"),
    [
        *((GiteaDriver, config) for config in METHODS),
        *((GitlabDriver, config) for config in METHODS if config.merge_method is not MergeMethod.REBASE),
    ],
    ids=lambda value: f"{value.merge_method}-{value.landing}" if isinstance(value, Config) else value.__name__,
)
@asynchronous
async def test_pull_requests_land(tmp_path: Path, make_forge: MakeForgeDriver, config: Config):
    """GitLab rebases no merge request that it merges, so a queue there does not rebase with these settings."""
    async with a_forge_scenario(tmp_path, in_sha256(make_forge), config) as scenario:
        scenario.open(1, 2)
        await scenario.comment(1, "/merge")
        await scenario.submit(2)
        await scenario.report_all_runs()
        assert [scenario.forge.is_merged(number) for number in (1, 2)] == [True, True]
        assert {"file1", "file2"} <= scenario.origin.files("main").keys()
        merged = (await scenario.submission(2)).merged_sha
        tip = scenario.origin.tip("main")
        assert (merged, len(tip)) == (tip, SHA256_DIGITS)
        assert scenario.test_branches() == []
