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

from tests.support.api_client import QUEUE, ApiClient
from tests.support.environment import QueueEnvironment, new_token
from tests.support.host_log import HostLog
from tests.support.polling import eventually
from tests.support.promises import broken_promises
from tests.support.replicas import Replica, Replicas, RetryingApiClient
from tests.support.repositories import Origin
from tests.support.violations import assert_kept


class Repository(Struct, frozen=True):
    origin: Origin
    host_log: HostLog


class Installation:
    def __init__(self, folder: Path, database_url: str, *roles: str) -> None:
        self.queues: list[QueueEnvironment] = []
        self._replica_apis: list[ApiClient] = []
        self.database_url = database_url
        self.replicas = Replicas(folder, database_url, *roles)
        self._folder = folder
        self._repositories = dict[str, Repository]()
        self._token = new_token(self.replicas[0].config)

    @classmethod
    def start(cls, folder: Path, database_url: str, *roles: str) -> Self:
        installation = cls(folder, database_url, *roles)
        try:
            installation.replicas.start()
        except BaseException:
            installation.close()
            raise
        return installation

    def queue(self, repository: str = "app", branch: str = "main", **settings: Any) -> QueueEnvironment:
        queue = self.without_queue(repository, branch)
        queue.create_queue(**settings)
        return queue

    def without_queue(self, repository: str = "app", branch: str = "main") -> QueueEnvironment:
        """The environment of a queue, without the queue."""
        repo = self._repositories.get(repository) or self._create_repository(repository)
        if repo.origin.ref(branch) is None:
            repo.origin.branch(branch, base="main")
        queue = QUEUE | {"repo": QUEUE["repo"] | {"name": repository}, "targetBranch": branch}
        api = RetryingApiClient(self.replicas, self._token, repo.host_log, queue)
        surroundings = QueueEnvironment(repo.origin, repo.host_log, api)
        self.queues.append(surroundings)
        self._share_repository(surroundings)
        return surroundings

    def api_of(self, replica: Replica, queue: QueueEnvironment) -> ApiClient:
        """A client of one replica only; its responses are recorded like all others."""
        api = ApiClient(replica, self._token, queue.host_log, queue.api.queue)
        api.responses, api.requests = queue.api.responses, queue.api.requests
        self._replica_apis.append(api)
        return api

    def _create_repository(self, name: str) -> Repository:
        origin = Origin.create(self._folder / "repos" / "acme" / f"{name}.git")
        origin.commit("main", {"README": "1"})
        self._repositories[name] = Repository(origin, HostLog(origin, self._folder / f"host-{name}"))
        return self._repositories[name]

    def _share_repository(self, added: QueueEnvironment) -> None:
        """Queues of one repository share its log, which shows the merges of all, and the results of test branches."""
        queues = [queue for queue in self.queues if queue.origin is added.origin]
        added.ci.passed = queues[0].ci.passed
        for queue in queues:
            queue.evidence.other_queues = [other.evidence for other in queues if other is not queue]

    def restart_and_clean_up(self) -> None:
        """A push that outlived its replica can create a test branch after its run has ended; a restart deletes it."""
        self.replicas.stop()
        eventually(lambda: not list(self._running_git_commands()), describe=lambda: list(self._running_git_commands()))
        self.replicas.start()

    def _running_git_commands(self) -> list[str]:
        """The command line of every git process of a replica or repository contains the folder."""
        found = list[str]()
        for process in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                command = process.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if str(self._folder) in command and command.startswith("git"):
                found.append(command)
        return found

    def check_promises(self) -> None:
        """At the end all is decided and cleaned up, every target branch passes, and every promise was kept."""
        for queue in self.queues:
            queue.ci.enabled = True
            queue.wait_until_clean()
            queue.evidence.collect()
        for queue in self.queues:
            assert_kept(broken_promises(queue.evidence), str(queue.api.queue))
            assert queue.ci.evaluate(queue.origin.tip(queue.target_branch)) == "success"

    def close(self) -> None:
        for api in (*(queue.api for queue in self.queues), *self._replica_apis):
            api.close()
        self.replicas.close()
