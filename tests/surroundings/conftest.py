"""Premises whose surroundings can be made to fail, held to all promises when the test is over."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import hold_to_promises
from tests.support.host_log import HostLog
from tests.support.premises import Premises
from tests.support.quick_server import QuickServer
from tests.support.repositories import Files, Origin
from tests.support.server import Server
from tests.surroundings.disks import SmallDisk, may_mount
from tests.surroundings.watching import Watching


class Site(Premises):
    """Premises, and somebody who watches over the server."""

    def __init__(self, server: Server, origin: Origin, host_log: HostLog) -> None:
        super().__init__(server, origin, host_log)
        self.watching = Watching(server)


class Found:
    """Founds sites."""

    def __init__(self, folder: Path) -> None:
        self.founded: list[Site] = []
        self.folder = folder
        self._disks: list[SmallDisk] = []

    def __call__(self, server: Server | None = None, **settings: Any) -> Site:
        site = self.without_queue(server or self.server())
        site.create_queue(**settings)
        return site

    def without_queue(self, server: Server, files: Files | None = None) -> Site:
        origin = Origin.made(self.folder / "repos" / "acme" / "app.git")
        origin.commit("main", {"README": "1", **(files or {})})
        site = Site(server, origin, HostLog(origin, self.folder / "host"))
        self.founded.append(site)
        server.start()
        return site

    def server(self) -> Server:
        return QuickServer(self.folder, open_metrics=True)

    def disk(self, folder: str, megabytes: int) -> SmallDisk:
        """A disk of its own for a folder, mounted before anything is in it."""
        if not may_mount(self.folder / "mountable"):
            pytest.skip("no disk can be filled: only root may mount one")
        self._disks.append(SmallDisk(self.folder / folder, megabytes))
        return self._disks[-1]

    def close(self) -> None:
        for part in (*self.founded, *self._disks):
            part.close()


@pytest.fixture
def found(tmp_path: Path) -> Iterator[Found]:
    founding = Found(tmp_path)
    yield founding
    try:
        for site in founding.founded:
            hold_to_promises(site)
    finally:
        founding.close()
