"""A real Mergeyard server for tests on a real forge: its own process, its API, and a CI that reports to the forge."""

import subprocess
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.forge.gitea_admin import BOT, HOST, SCOPES, GiteaAdmin
from tests.forge.project import Project
from tests.support.queue_server import QueueServer

SECRET = "hush"
CHECK = "unit"
BAD = "bad.txt"
"""A pull request with this file fails the check."""
CI_POLL_INTERVAL_S = 0.2
EVENTS = (
    *("push", "status", "issue_comment"),
    *("pull_request", "pull_request_sync", "pull_request_label", "pull_request_comment"),
)


class MergeyardServer(QueueServer):
    def __init__(self, folder: Path, admin: GiteaAdmin, project: Project, signing_key_file: Path | None = None) -> None:
        settings = {"provider": "gitea", "url": admin.url, "poll_seconds": 2}
        settings |= {"signing_key_file": str(signing_key_file)} if signing_key_file else {}
        secrets = {"token": admin.token_of(BOT, *SCOPES), "webhook_secret": SECRET}
        super().__init__(folder, HOST, settings, secrets, (project.owner, project.name))
        self.project = project
        self.ci = Ci(project)

    def enable_webhooks(self) -> None:
        """From now on the forge sends webhooks."""
        self.project.add_webhook(f"{self.server.url}/hooks/gitea/{HOST}", SECRET, *EVENTS)

    def status_comment(self, number: int) -> str:
        """The comment that shows the state; there is never a second one."""
        (comment,) = [text for text in self.project.comments(number) if text.startswith("<!-- mergeyard -->")]
        return comment


class Ci:
    """Tests every test branch once, as a CI of the forge would, and reports to the forge."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._tested = set[str]()
        self.is_held = False
        """Tests can set it: then no branch is tested."""
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._test_branches)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def _test_branches(self) -> None:
        while not self._stopped.wait(CI_POLL_INTERVAL_S):
            for ref, sha in () if self.is_held else self._project.refs().items():
                if ref.startswith("refs/heads/mergeyard/") and sha not in self._tested:
                    self._tested.add(sha)
                    self._project.report(sha, CHECK, self._result_of(ref), target_url="https://ci.example.com/1")

    def _result_of(self, ref: str) -> str:
        try:
            tip = self._project.fetch(ref)
        except subprocess.CalledProcessError:
            return "error"  # the branch is already deleted, and its result is not needed
        return "failure" if BAD in self._project.origin.files(tip) else "success"


@contextmanager
def a_mergeyard_server(
    folder: Path, admin: GiteaAdmin, project: Project, signing_key_file: Path | None = None, **rule: Any
) -> Generator[MergeyardServer]:
    """With more options of the protection rule of `main`."""
    project.protect("main", [CHECK], **rule)
    mergeyard = MergeyardServer(folder, admin, project, signing_key_file)
    mergeyard.server.start()
    mergeyard.ci.start()
    try:
        mergeyard.post("createQueue")
        yield mergeyard
    finally:
        mergeyard.ci.stop()
        mergeyard.close()
