"""A server that is killed again and again while users work with its queues, and the checks of the result."""

from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from random import Random
from typing import Any

from msgspec import Struct

from tests.kills.clients import RetryingApi, Subscriber
from tests.kills.effects import StoreKind
from tests.kills.killable_adapters import HEADS_FIRST
from tests.kills.killable_server import KillableServer, KillSchedule
from tests.kills.local_checks import LocalChecksEnvironment, checks_config
from tests.kills.users import SCRATCH, Administrators, Users
from tests.replicas.world import cancel_unready_pull_requests, find_wrongly_removed
from tests.support.api_client import QUEUE
from tests.support.environment import QueueEnvironment, new_token
from tests.support.host_log import HEADS_HOOK, HostLog
from tests.support.polling import eventually
from tests.support.postgres import shared_server
from tests.support.promises import broken_promises
from tests.support.repositories import Files, Origin
from tests.support.violations import assert_kept
from tests.support.webhooks import WebhookReceiver

SETTINGS: tuple[dict[str, Any], ...] = (
    {"concurrency": 3, "directMergeMode": "always"},
    {"batch": True, "batchingMinSize": 3, "batchingMaxWaitTimeMinutes": 0, "mergeMethod": "squash"},
    {"mode": "parallel", "mergeMethod": "rebase", "deleteHeadBranches": True},
    {"batch": True, "batchingMinSize": 2, "batchingMaxWaitTimeMinutes": 0},
    {"canOptimisticallyMerge": True, "pendingFailureDepth": 1, "mergeMethod": "squash", "directMergeMode": "always"},
)
OWN = """
[hosts."own.local"]
provider = "git"
root = "own"
checks = "run"
"""
END_OF_LEASE = "UPDATE replicas SET expires_at = now() - interval '1 second'"
"""Ends the leases of a killed server at once, so that the next one does not wait ten seconds for them."""
KILLS_AT_FIRST_START = 2
"""Kills while the database is created."""


class Outcome(Struct):
    concluded: int = 0
    merged: int = 0
    landings: int = 0
    responses: int = 0
    repeated: int = 0
    events: int = 0

    def add(self, other: "Outcome") -> None:
        for field in self.__struct_fields__:
            setattr(self, field, getattr(self, field) + getattr(other, field))

    def __str__(self) -> str:
        submissions = f"{self.concluded} submissions decided ({self.merged} merged), {self.landings} landings checked"
        responses = f"{self.responses} responses stored, {self.repeated} of them requested again after a kill"
        return f"{submissions}, {responses}, {self.events} events delivered: every promise kept"


class World:
    def __init__(
        self, folder: Path, seed: int, schedule: KillSchedule, kills_at_first_start: int = KILLS_AT_FIRST_START
    ) -> None:
        self._folder = folder
        self._random = Random(f"{seed} {schedule.store}")
        self._moves_heads_first = seed // len(StoreKind) % 2 == 0
        self._schedule = schedule
        self._database = shared_server().fresh_database() if schedule.store is StoreKind.POSTGRES else None
        self._closing = ExitStack()
        self._server = self._prepare_server()
        self._closing.callback(self._end_server)
        try:
            self._start_first_server(kills_at_first_start)
            self._token = new_token(self._server.config)
            self._queues = [self._with_ci(), self._with_own_checks()]
            self._subscriber = self._subscribe()
            self._queues[0].create_queue(**SETTINGS[seed % len(SETTINGS)])
            self._queues[1].api.post("createQueue")
            self._users = self._create_users()
        except BaseException:
            self.close()
            raise

    # Before the first kill

    def _prepare_server(self) -> KillableServer:
        settings: dict[str, object] = {"allow_private_webhooks": True, "sealing_key_file": "key"}
        settings["runner_sandbox"] = "none"  # its checks write to a log outside of their checkout
        if self._database is not None:
            settings["database_url"] = self._database
        server = KillableServer(self._folder, self._schedule, self._random, **settings)
        (self._folder / "own").mkdir()
        if self._moves_heads_first:
            (self._folder / "repos").mkdir(exist_ok=True)
            (self._folder / "repos" / HEADS_FIRST).touch()
        server.config.write_text(server.config.read_text() + OWN)
        return server

    def _start_first_server(self, kills: int) -> None:
        self._server.kill_during_first_start(kills)
        self._server.start_without_kills()
        if self._database is not None:
            name = self._database.rpartition("/")[2]
            self._server.on_killed = lambda: shared_server().run(END_OF_LEASE, name)

    def _with_ci(self) -> QueueEnvironment:
        origin, host_log = self._repository("repos", {"README": "1"})
        if self._moves_heads_first:
            origin.install_hook("post-receive", HEADS_HOOK)
        return QueueEnvironment(origin, host_log, self._api("git.local", host_log))

    def _with_own_checks(self) -> QueueEnvironment:
        log = self._folder / "passed"
        origin, host_log = self._repository("own", {"README": "1", ".mergeyard.toml": checks_config(log)})
        return LocalChecksEnvironment(origin, host_log, self._api("own.local", host_log), log)

    def _repository(self, root: str, files: Files) -> tuple[Origin, HostLog]:
        origin = Origin.create(self._folder / root / "acme" / "app.git")
        origin.commit("main", files)
        return origin, HostLog(origin, self._folder / f"host-{root}")

    def _api(self, host: str, host_log: HostLog) -> RetryingApi:
        queue = QUEUE | {"repo": QUEUE["repo"] | {"host": host}}
        api = RetryingApi(self._server, self._token, host_log, queue)
        self._closing.callback(api.close)
        return api

    def _subscribe(self) -> Subscriber:
        subscriber = Subscriber()
        self._closing.enter_context(subscriber.receiver.serve())
        self._queues[0].api.post("createWebhook", url=subscriber.receiver.url)
        return subscriber

    def _create_users(self) -> list[Users]:
        first, second = (Users(queue, self._random) for queue in self._queues)
        receiver = self._closing.enter_context(WebhookReceiver().serve())
        self._queues[0].origin.branch(SCRATCH, base="main")
        first.add_actions(
            Administrators(self._server, self._queues[0].api, self._random, receiver, self._token).actions
        )
        return [first, second]

    # While servers are killed

    def run(self, kills: int) -> Outcome:
        self._server.start_killing()
        while self._server.kills < kills:
            for users in self._users:
                users.act_towards(self._server.chosen_effects)
            self._restart_or_end()
        self._server.start_without_kills()
        return self._check()

    def _restart_or_end(self) -> None:
        if not self._server.alive:
            self._server.restart_after_kill()
        elif self._server.needs_shutdown and self._random.random() < 0.3:
            self._server.shut_down()

    # Checks, on a server that is not killed

    def _check(self) -> Outcome:
        for queue in self._queues:
            queue.update_queue(state="RUNNING")
        for queue in self._queues:
            cancel_unready_pull_requests(queue)
        self._restart_to_clean_up()
        outcome = Outcome()
        for queue in self._queues:
            outcome.add(self._check_queue(queue))
        complaints = self._server.logged_errors()
        assert not complaints, complaints
        return outcome

    def _restart_to_clean_up(self) -> None:
        """A push that outlived its server can create a test branch after its run ended: the next start deletes it."""
        self._server.stop()
        eventually(
            lambda: not running_git_processes(self._folder), describe=lambda: running_git_processes(self._folder)
        )
        self._server.start_without_kills()

    def _check_queue(self, queue: QueueEnvironment) -> Outcome:
        queue.wait_until_clean()
        evidence = queue.evidence
        evidence.collect()
        broken = [*broken_promises(evidence), *find_wrongly_removed(evidence)]
        broken += [*wrong_states_on_host(queue), *wrong_head_branches(queue)]
        assert_kept(broken, str(queue.api.queue))
        assert queue.ci.evaluate(queue.origin.tip("main")) == "success"
        assert isinstance(queue.api, RetryingApi)
        return Outcome(
            concluded=len(evidence.submissions),
            merged=sum(submission["state"] == "merged" for submission in evidence.submissions.values()),
            landings=len(evidence.landings),
            responses=len(queue.api.responses),
            repeated=queue.api.repeated,
            events=self._subscriber.check(queue.api),
        )

    def _end_server(self) -> None:
        if self._server.alive:
            self._server.kill()

    def close(self) -> None:
        self._closing.close()


def wrong_states_on_host(queue: QueueEnvironment) -> Iterator[str]:
    """A merged pull request without a later push is shown as merged on the Git host."""
    for submission in queue.evidence.submissions.values():
        number, head = submission["prNumber"], queue.origin.tip(f"refs/pull/{submission['prNumber']}/head")
        if (
            submission["state"] == "merged"
            and head in (submission["prSha"], submission["mergedSha"])
            and queue.pull_request_meta(number)["state"] != "merged"
        ):
            yield f"#{number} is merged, but the host shows it as {queue.pull_request_meta(number)['state']}"


def wrong_head_branches(queue: QueueEnvironment) -> Iterator[str]:
    """A merged pull request that was squashed or rebased has its head branch at the merged commit, unless its author
    pushed later or the queue deleted the branch."""
    if queue.api.post("getQueue")["mergeMethod"] == "merge_commit":
        return
    written = {update.ref: each for each in queue.evidence.transactions for update in each.updates}
    for submission in queue.evidence.submissions.values():
        if submission["reason"]["code"] in ("merged_by_queue", "merged_directly"):
            ref = queue.evidence.head_branch_ref(submission["prNumber"])
            tip, is_ours = queue.origin.ref(ref), written[ref].by_service
            if tip == submission["prSha"] or (is_ours and tip not in (None, submission["mergedSha"])):
                yield f"#{submission['prNumber']} is merged as {submission['mergedSha']}, but {ref} is at {tip}"


def running_git_processes(folder: Path) -> list[str]:
    """Those of a server, and those that receive a push: all have the folder in their command line."""
    found = list[str]()
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            command = process.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if str(folder) in command and command.startswith("git"):
                found.append(command)
    return found
