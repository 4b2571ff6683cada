"""An installation: replicas on one database, with repositories and queues around them.

installation = Installation.running(tmp_path, database_url)
queue = installation.queue(concurrency=3)
number = queue.open_pr({"a.txt": "1"})
queue.submit(number)
queue.wait_for("merged", number)
"""

from pathlib import Path
from typing import Any, Self

from msgspec import Struct

from tests.support.api import QUEUE, Api
from tests.support.host_log import HostLog
from tests.support.patience import eventually
from tests.support.premises import new_token
from tests.support.promises import broken_promises
from tests.support.replicas import PatientApi, Replica, Replicas
from tests.support.repositories import Origin
from tests.support.surroundings import Surroundings


class Repository(Struct, frozen=True):
    origin: Origin
    host_log: HostLog


class Installation:
    def __init__(self, folder: Path, database_url: str, *roles: str) -> None:
        self.queues: list[Surroundings] = []
        self._aimed: list[Api] = []
        self.database_url = database_url
        self.replicas = Replicas(folder, database_url, *roles)
        self._folder = folder
        self._repositories = dict[str, Repository]()
        self._token = new_token(self.replicas[0].config)

    @classmethod
    def running(cls, folder: Path, database_url: str, *roles: str) -> Self:
        installation = cls(folder, database_url, *roles)
        try:
            installation.replicas.start()
        except BaseException:
            installation.close()
            raise
        return installation

    def queue(self, repository: str = "app", branch: str = "main", **settings: Any) -> Surroundings:
        queue = self.without_queue(repository, branch)
        queue.create_queue(**settings)
        return queue

    def without_queue(self, repository: str = "app", branch: str = "main") -> Surroundings:
        """All that a queue would live with."""
        there = self._repositories.get(repository) or self._made(repository)
        if there.origin.ref(branch) is None:
            there.origin.branch(branch, upon="main")
        queue = QUEUE | {"repo": QUEUE["repo"] | {"name": repository}, "targetBranch": branch}
        api = PatientApi(self.replicas, self._token, there.host_log, queue)
        surroundings = Surroundings(there.origin, there.host_log, api)
        self.queues.append(surroundings)
        self._introduce_neighbours(surroundings)
        return surroundings

    def through(self, replica: Replica, queue: Surroundings) -> Api:
        """To speak with one of them, and with nobody else; what it answers counts like every other answer."""
        api = Api(replica, self._token, queue.host_log, queue.api.queue)
        api.answers, api.asked = queue.api.answers, queue.api.asked
        self._aimed.append(api)
        return api

    def _made(self, name: str) -> Repository:
        origin = Origin.made(self._folder / "repos" / "acme" / f"{name}.git")
        origin.commit("main", {"README": "1"})
        self._repositories[name] = Repository(origin, HostLog(origin, self._folder / f"host-{name}"))
        return self._repositories[name]

    def _introduce_neighbours(self, newcomer: Surroundings) -> None:
        """Those in one repository write to it side by side, and its test branches are reported on by all."""
        neighbours = [queue for queue in self.queues if queue.origin is newcomer.origin]
        newcomer.ci.passed = neighbours[0].ci.passed
        for queue in neighbours:
            queue.evidence.targets_beside |= {other.evidence.target for other in neighbours}

    def sweep(self) -> None:
        """A push that outlived its replica may bring a test branch when its run is over: a start sweeps it up."""
        self.replicas.stop()
        eventually(lambda: not list(self._pushes_on_their_way()), but=lambda: list(self._pushes_on_their_way()))
        self.replicas.start()

    def _pushes_on_their_way(self) -> list[str]:
        """Every git that a replica started, and every one at a repository, names its folder."""
        found = list[str]()
        for process in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = process.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if str(self._folder) in words and words.startswith("git"):
                found.append(words)
        return found

    def hold_to_promises(self) -> None:
        """In the end all is decided and clean, every target is green, and every promise was kept."""
        for queue in self.queues:
            queue.ci.working = True
            queue.wait_for_cleanliness()
            queue.evidence.collect()
            broken = broken_promises(queue.evidence)
            assert not broken, "\n".join([str(queue.api.queue), *broken])
            assert queue.ci.verdict(queue.origin.tip(queue.target)) == "success"

    def close(self) -> None:
        for api in (*(queue.api for queue in self.queues), *self._aimed):
            api.close()
        self.replicas.close()
