"""Runs the whole service: real git, a real store, a CI that reports when the test says so, a manual clock.

async with a_scenario(tmp_path) as scenario:
    scenario.open(1, 2)
    await scenario.submit(1, 2)
    assert scenario.queue_text == "main ← 1… ← 2…"
    await scenario.passes(1)
"""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct

from mergeyard.adapters.encryption import FileSecretBox
from mergeyard.adapters.git_cli.limits import Limits
from mergeyard.adapters.git_cli.mirrors import GitCli
from mergeyard.adapters.host_plain.host import PlainHost
from mergeyard.adapters.runner_local.runner import LocalRunner
from mergeyard.domain.access import NO_GRANTS, Grants
from mergeyard.domain.config import Config
from mergeyard.domain.ids import SHA1, ObjectFormat, PullRequestNumber, QueueKey, Repo, Sha
from mergeyard.domain.pull_requests import ImpactedTargets, Status, StatusState, Submission
from mergeyard.domain.runs import Run
from mergeyard.domain.states import QueueState, RunStatus
from mergeyard.domain.timestamps import Instant
from mergeyard.engine.views import render_text
from mergeyard.ports.external import Forecaster
from mergeyard.ports.forge import ChecksFrom, Host
from mergeyard.ports.git import Identity
from mergeyard.service.git_names import branch_ref, name_test_branch
from mergeyard.service.impacted_targets import EncodedTargets, encode_targets
from mergeyard.service.queue_actor import QueueActor
from mergeyard.service.service import Service
from mergeyard.service.submissions import PullRequestCommand, SubmitOptions
from mergeyard.service.views import QueueView, SubmissionView
from tests.support.clock import ManualClock
from tests.support.faulty_store import FaultyStore
from tests.support.repositories import Files, Origin
from tests.support.webhooks import FakeSender

REPO = Repo("git.local", "acme", "app")
KEY = QueueKey(REPO, "main")
CONFIG = 'version = 1\nrequired_statuses = ["unit"]\n'
SECOND = 1000
MINUTE = 60 * SECOND
IDLE_COROUTINES = {
    "LocalRunner.next_result",
    "ObjectReader._read_responses",
    "mark_merged",
    "MergeMarker.consume",
    "QueueActor.wait_until",
    "MergeAuditor._refresh_target_branch",
    "AuditScheduler.audit_due",
    "wait_for_response",
}
"""A task that waits in one of these is idle. All but the first two wait for other tasks, which count as busy
themselves, or for the response of a server."""
IDLE_ROUNDS = 5
"""Rounds of the event loop without a busy task."""
IDLE_TIMEOUT_S = 30
"""Real time, for git processes to finish."""
IDLE_CHECK_INTERVAL_S = 0.1
"""Real time. A task that ends or sleeps is noticed at once, but not one that starts to wait in an idle coroutine."""


class ScenarioSetup(Struct, frozen=True):
    """Configuration of a scenario."""

    repository_config: str = CONFIG
    checks: ChecksFrom = ChecksFrom.API
    poll_interval_ms: int = SECOND
    """A scenario that lasts hours polls less often than the service does by default."""
    grants: Grants = NO_GRANTS
    hosts_with_urgent_writers: tuple[str, ...] = ()
    forecaster: Forecaster | None = None
    git_limits: Limits | None = None
    """None: a share of this machine."""
    object_format: ObjectFormat = SHA1
    identity: Identity | None = None
    """The committer of the service, perhaps with a signing key; None: the default one."""


class Scenario:
    host_name = REPO.host
    """The host's name in the settings. A change takes effect at the next start."""

    def __init__(self, folder: Path, setup: ScenarioSetup) -> None:
        self.folder = folder
        self.setup = setup
        self.clock = ManualClock()
        self.origin = self._new_origin()
        self.origin.commit("main", {".mergeyard.toml": setup.repository_config, "README": "hello\n"})
        self.sender = FakeSender()
        self.store = self._new_store()
        self.service = self._new_service()

    def _new_origin(self) -> Origin:
        return Origin.create(self.folder / "repos" / "acme" / "app.git", self.setup.object_format)

    def _new_host(self) -> Host:
        return PlainHost(self.host_name, self.folder / "repos", self.setup.checks)

    def _new_store(self) -> FaultyStore:
        return FaultyStore(self.folder / "data" / "mergeyard.db")

    def _new_service(self) -> Service:
        git = GitCli(self.folder / "mirrors", Identity("Mergeyard", "mergeyard@example.org"), self.setup.git_limits)
        host = self._new_host()

        async def check_out(repo: Repo, commit: Sha, folder: str) -> None:
            await (await git.mirror(str(repo), await host.remote(repo))).export_tree(commit, folder)

        return Service(
            store=self.store,
            clock=self.clock,
            git=git,
            hosts={host.name: host},
            identities={host.name: self.setup.identity} if self.setup.identity else {},
            runner=LocalRunner(self.folder / "checks", 2, check_out),
            sender=self.sender,
            secret_box=FileSecretBox(self.folder / "sealing.key"),
            public_url="http://yard.example",
            poll_interval_ms=self.setup.poll_interval_ms,
            grants=self.setup.grants,
            hosts_with_urgent_writers=self.setup.hosts_with_urgent_writers,
            forecaster=self.setup.forecaster,
        )

    # Actions of users on the Git host.

    def open(self, *numbers: int, base: str = "main", files: Files | None = None) -> None:
        for number in numbers:
            branch = f"feature{number}"
            self.origin.branch(branch, base=base, files=files or {f"file{number}": f"{number}\n"})
            self.set_pull_request(number, head=self.origin.tip(branch), branch=branch)

    def set_pull_request(self, number: int, *, head: Sha | None = None, **changes: object) -> None:
        """Sets its head, or any member of its metadata: title, author, base, branch, draft, state."""
        new = {"title": f"Change {number}", "author": "Ada", "base": "main", "draft": False, "state": "open"}
        meta = self.pull_request_meta(number) if self.origin.ref(f"refs/pull/{number}/meta") else new
        self.origin.set_ref(f"refs/pull/{number}/meta", self.origin.blob(json.dumps({**meta, **changes})))
        if head is not None:
            self.origin.set_ref(f"refs/pull/{number}/head", head)

    def push(self, number: int, files: Files) -> None:
        self.set_pull_request(number, head=self.origin.commit(f"feature{number}", files))

    # Requests of users to the queue.

    async def create_queue(self, config: Config | None = None, key: QueueKey = KEY) -> None:
        await self.service.queues.create(key, config or Config(), "ada", _render_nothing, None)

    async def update(self, *, state: QueueState | None = None, **settings: Any) -> None:
        await self.update_without_waiting(state=state, **settings)
        await self.wait_until_idle()

    async def update_without_waiting(self, *, state: QueueState | None = None, **settings: Any) -> None:
        """Changes settings or state and waits only for the response."""
        await self.service.queues.update(KEY, settings, state, "ada", _render_nothing, None)

    async def submit(self, *numbers: int, **options: Any) -> None:
        """Submits one after the other, so that they are queued in this order."""
        for number in numbers:
            await self.submit_without_waiting(number, **options)
            await self.wait_until_idle()

    async def submit_without_waiting(self, *numbers: int, **options: Any) -> None:
        """Submits as a client of the API, and waits only for the response."""
        submit_options = SubmitOptions(**options, force_needs_head=False)
        for number in numbers:
            await self.service.submissions.submit(self.build_command(number), submit_options)

    async def cancel(self, number: int) -> None:
        await self.service.submissions.cancel(self.build_command(number))
        await self.wait_until_idle()

    async def restart_tests(self, number: int) -> None:
        await self.service.submissions.restart(self.build_command(number))
        await self.wait_until_idle()

    async def upload_impacted_targets(self, number: int, impacted_targets: ImpactedTargets) -> None:
        await self.service.impacted_targets_uploads.save(
            KEY,
            PullRequestNumber(number),
            None,
            EncodedTargets(encode_targets(impacted_targets), impacted_targets),
            lambda _: b"",
            None,
        )
        await self.wait_until_idle()

    def build_command(self, number: int, key: QueueKey = KEY) -> PullRequestCommand:
        return PullRequestCommand(key=key, number=PullRequestNumber(number), actor="ada", render=_render_nothing)

    # Results of CI.

    async def passes(self, *numbers: int, check: str = "unit") -> None:
        await self.report(self.run_of(*numbers).tip, StatusState.SUCCESS, check)

    async def fails(self, *numbers: int, check: str = "unit") -> None:
        await self.report(self.run_of(*numbers).tip, StatusState.FAILURE, check)

    async def report(self, commit: Sha, state: StatusState, check: str = "unit") -> None:
        await self.report_without_waiting(commit, state, check)
        await self.wait_until_idle()

    async def report_all_runs(self, *failing: int) -> None:
        """Reports on every run until none is in progress: failed if it contains one of these, else passed."""
        while runs := self.runs():
            failed = any(member.number in failing for member in runs[0].stack)
            await self.report(runs[0].tip, StatusState.FAILURE if failed else StatusState.SUCCESS)

    async def report_without_waiting(
        self, commit: Sha, state: StatusState = StatusState.SUCCESS, check: str = "unit"
    ) -> None:
        """Reports a status and waits only for the response."""
        await self.service.statuses.report(REPO, commit, Status(context=check, state=state, at=self.clock.now()))

    # Time and restarts.

    async def advance_time(self, milliseconds: int) -> None:
        """Moves the clock from wakeup to wakeup and waits after each until everything it triggered is done."""
        end = Instant(self.clock.now() + milliseconds)
        while (wakeup := self.clock.next_wakeup()) is not None and wakeup <= end:
            self.clock.move_to(wakeup)
            await self.wait_until_idle()
        self.clock.move_to(end)
        await self.wait_until_idle()

    async def restart(self) -> None:
        """Stops the service and starts another one with the stored data."""
        await self.service.stop()
        await self.start()

    async def start(self) -> None:
        """Starts another service with the stored data."""
        self.store = self._new_store()
        self.service = self._new_service()
        await self.service.start()
        await self.wait_until_idle()

    async def wait_until_idle(self) -> None:
        """Waits until every task waits for the clock or for external input."""
        deadline = asyncio.get_running_loop().time() + IDLE_TIMEOUT_S
        while busy := await self._find_busy_tasks():
            changes = {*busy, self.clock.next_sleep()}
            await asyncio.wait(changes, timeout=IDLE_CHECK_INTERVAL_S, return_when=asyncio.FIRST_COMPLETED)
            assert asyncio.get_running_loop().time() < deadline, f"still busy after {IDLE_TIMEOUT_S} seconds: {busy}"

    async def _find_busy_tasks(self) -> list[asyncio.Task[Any]]:
        """Looks several times: an idle task may just have received input and needs a few rounds to start working."""
        for _ in range(IDLE_ROUNDS):
            if busy := self._busy_tasks():
                return busy
            await asyncio.sleep(0)
        return []

    def _busy_tasks(self) -> list[asyncio.Task[Any]]:
        others = asyncio.all_tasks() - self.clock.sleeping_tasks - {asyncio.current_task()}
        return [task for task in others if IDLE_COROUTINES.isdisjoint(_names(task))]

    # State.

    @property
    def queue_actor(self) -> QueueActor:
        (actor,) = [actor for actor in self.service.registry if actor.key == KEY]
        return actor

    @property
    def queue_text(self) -> str:
        return render_text(self.queue_actor.queue)

    def runs(self) -> list[Run]:
        return [run for run in self.queue_actor.queue.runs.values() if run.status is RunStatus.IN_PROGRESS]

    def run_of(self, *numbers: int) -> Run:
        """The run in progress that tests exactly these; without numbers, the base run."""
        (run,) = [run for run in self.runs() if tuple(member.number for member in run.tested_members) == numbers]
        return run

    async def submission(self, number: int) -> Submission:
        return (await self.view(number)).submission

    async def view(self, number: int) -> SubmissionView:
        return await self.service.submission_queries.view_by_number(KEY, PullRequestNumber(number))

    async def state(self, number: int) -> str:
        """With its reason, e.g. `failed: test_run_failed`."""
        view = await self.view(number)
        return f"{view.submission.state}: {view.reason.code}"

    def pull_request_meta(self, number: int) -> dict[str, object]:
        """Its metadata on the Git host."""
        return json.loads(self.origin.run("cat-file", "blob", f"refs/pull/{number}/meta"))

    def test_branch_of(self, *numbers: int) -> str:
        return branch_ref(name_test_branch(self.run_of(*numbers)))

    def test_branches(self) -> list[str]:
        return [ref for ref in self.origin.refs() if ref.startswith("refs/heads/mergeyard/")]


def _names(task: asyncio.Task[Any]) -> set[str]:
    """Names of all coroutines that the task is suspended in."""
    names, awaited = set[str](), task.get_coro()
    while awaited is not None:
        names.add(getattr(awaited, "__qualname__", ""))
        awaited = getattr(awaited, "cr_await", None)
    return names


def _render_nothing(_: SubmissionView | QueueView) -> bytes:
    return b""


@asynccontextmanager
async def a_scenario(
    folder: Path, config: Config | None = None, setup: ScenarioSetup | None = None
) -> AsyncGenerator[Scenario]:
    scenario = Scenario(folder, setup or ScenarioSetup())
    await scenario.service.start()
    await scenario.create_queue(config)
    await scenario.wait_until_idle()
    try:
        yield scenario
    finally:
        await scenario.service.stop()
