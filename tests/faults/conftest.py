"""Servers in an environment that can fail; all promises are checked when the test is over."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import assert_promises_kept
from tests.faults.health import HealthProbe
from tests.faults.injection import SmallDisk, can_mount
from tests.support.environment import ServerEnvironment
from tests.support.forked_server import ForkedServer
from tests.support.host_log import HostLog
from tests.support.repositories import Files, Origin
from tests.support.server import Server


class FaultySite(ServerEnvironment):
    """Premises, with a probe of the server's health."""

    def __init__(self, server: Server, origin: Origin, host_log: HostLog) -> None:
        super().__init__(server, origin, host_log)
        self.health = HealthProbe(server)


class SiteFactory:
    """Creates sites."""

    def __init__(self, folder: Path) -> None:
        self.sites: list[FaultySite] = []
        self.folder = folder
        self._disks: list[SmallDisk] = []

    def __call__(self, server: Server | None = None, **settings: Any) -> FaultySite:
        site = self.without_queue(server or self.server())
        site.create_queue(**settings)
        return site

    def without_queue(self, server: Server, files: Files | None = None) -> FaultySite:
        origin = Origin.create(self.folder / "repos" / "acme" / "app.git")
        origin.commit("main", {"README": "1", **(files or {})})
        site = FaultySite(server, origin, HostLog(origin, self.folder / "host"))
        self.sites.append(site)
        server.start()
        return site

    def server(self) -> Server:
        return ForkedServer(self.folder, open_metrics=True)

    def disk(self, folder: str, megabytes: int) -> SmallDisk:
        """Mounts a separate disk on a folder; it must be mounted before files are in the folder."""
        if not can_mount(self.folder / "mountable"):
            pytest.skip("no disk can be filled: only root can mount one")
        self._disks.append(SmallDisk(self.folder / folder, megabytes))
        return self._disks[-1]

    def close(self) -> None:
        for part in (*self.sites, *self._disks):
            part.close()


@pytest.fixture
def make_site(tmp_path: Path) -> Iterator[SiteFactory]:
    factory = SiteFactory(tmp_path)
    yield factory
    try:
        for site in factory.sites:
            assert_promises_kept(site)
    finally:
        factory.close()
