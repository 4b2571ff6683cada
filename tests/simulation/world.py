"""Plays a script: replicas, host, CI and people in one event loop, first with faults and then without."""

import asyncio
import logging
import os
import random
import re
import traceback
from collections import Counter, defaultdict
from collections.abc import Coroutine, Generator, Iterator, MutableMapping
from contextlib import contextmanager
from random import Random
from typing import Any, NoReturn

import structlog
from msgspec import to_builtins
from msgspec.structs import asdict

from mergeyard.domain.access import Scope
from mergeyard.domain.config import SETTINGS_WITHOUT_EFFECT, Mode
from mergeyard.domain.ids import PullRequestNumber, Sha
from mergeyard.domain.pull_requests import PullRequest, Submission
from mergeyard.domain.queue import Queue
from mergeyard.domain.states import PullRequestState, QueueState, Reason, RunStatus
from mergeyard.domain.timestamps import Instant
from mergeyard.engine.batching import unanswered_ahead
from mergeyard.engine.tasks import pending_tasks
from mergeyard.engine.views import wait_reason
from mergeyard.ports.forge import ForgeNotice
from mergeyard.service.queue_actor import QueueActor
from tests.simulation import script as s
from tests.simulation.api_client import SimApi
from tests.simulation.ci import SimCi
from tests.simulation.faults import Family, FaultInjector
from tests.simulation.git import TARGET, Objects, Origin
from tests.simulation.host import BRANCH, HostState
from tests.simulation.people import People
from tests.simulation.process import VirtualLoop
from tests.simulation.replica import InjectedBug, SharedEnvironment, SimReplica
from tests.support.host_log import TEST_BRANCH_PREFIX
from tests.support.world.repository import CheckRules

TRAILER = re.compile(r"^Mergeyard-(Pull-Request|Run|Head): (.*)$", re.MULTILINE)


@contextmanager
def capture_logged_errors(errors: list[str]) -> Generator[None]:
    def capture(_: Any, __: str, entry: MutableMapping[str, Any]) -> NoReturn:
        error = entry.get("exc_info")
        if isinstance(error, BaseException) and not isinstance(error, InjectedBug):
            errors.append(_summarize(entry["event"], error))
        raise structlog.DropEvent

    before = structlog.get_config()
    structlog.configure(processors=[capture], wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    try:
        yield
    finally:
        structlog.configure(**before)


def _summarize(event: str, error: BaseException) -> str:
    """With the file and line where it was raised."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{event}: {type(error).__name__}: {error} ({last.filename.rpartition('/')[2]}:{last.lineno})"


MAX_ROUNDS = 120
ROUND_S = 15
ROUNDS_TO_OBSERVE = 5
"""The minute within which changes at the host must be observed, however it failed before, and the time of one read."""
ROUNDS_TO_OBSERVE_HIDDEN = 46
"""For an approval that no notice and no poll shows, or after which the host returned stale data: it is read again after
ten minutes, and some polls fail."""
ROUNDS_TO_FINISH = 100
"""For a pull request that the host does not show as merged: the service waits for ten minutes, and then closes it."""
PHASE_TIMEOUT_S = 20
"""An act that waits for a phase of the queue is dropped after this time."""


class World:
    def __init__(self, script: s.Script) -> None:
        self.script = script
        self.loop = VirtualLoop()
        self.rng = Random(script.seed)
        self.faults = FaultInjector(self.rng, self.phase)
        self.check_rules = CheckRules()
        self.origin = Origin(Objects(), _initial_files(script))
        self.host_state = HostState(
            self.origin,
            self._send_notice,
            self.loop.call_later,
            script.heads,
            has_forge=script.has_forge,
            requires_approval=script.requires_approval,
            hides_reviews=script.hides_reviews,
        )
        self.host_state.is_wanted = self._is_wanted
        self.host_state.on_review = self._on_review
        self.reviews = defaultdict[PullRequestNumber, list[tuple[Instant, bool]]](list)
        """When each pull request was approved or not any more, oldest first."""
        self.withdrawals = Counter[str]()
        """How often an approval was withdrawn, by what the queue was doing with the pull request."""
        self.environment = SharedEnvironment(
            self.loop, self.host_state, self.faults, has_forge=script.has_forge, shared=script.replicas > 1
        )
        self.replicas = list[SimReplica]()
        self.errors = list[str]()
        self._tasks = set[asyncio.Task[None]]()
        self.observed_tips = dict[Sha, int]()
        """Tips of the target branch that our queue observed, and how many moves had happened at that time."""
        self._waiting = list[s.Act]()
        self._last_queue: Queue | None = None

    def play(self) -> None:
        with _seeded_randomness(self.script.seed), capture_logged_errors(self.errors):
            self.loop.run_until_complete(self._play())

    def close(self) -> None:
        self.loop.close()

    async def _play(self) -> None:
        self.replicas = [SimReplica(self.environment, self._on_decision) for _ in range(self.script.replicas)]
        for replica in self.replicas:
            await replica.start()
        _, token = await self.replicas[0].service.tokens.create("people", frozenset(Scope))
        self.api = SimApi(self.origin, self._running_applications, token, self.loop)
        to_host = self.script.has_forge
        self.ci = SimCi(
            self.host_state,
            self.check_rules,
            self.faults,
            self.rng,
            self.script.statuses,
            None if to_host else self.api,
            self.start,
        )
        self.people = People(self.host_state, self.api, self.ci, self.check_rules, self.script.nature)
        self.origin.watchers += [self.ci.start_new_tests, self.host_state.notice_pushes]
        await self.api.post_until_answered("createQueue", **_to_request(self.script))
        await self._run_script()
        await self._run_until_settled()

    # With faults.

    async def _run_script(self) -> None:
        for act in self.script.acts:
            self.loop.call_later(act.at / 1000, lambda act=act: self.start(self._await_phase(act)))
        last = max((act.at + getattr(act, "for_ms", 0) for act in self.script.acts), default=0)
        await asyncio.sleep(last / 1000 + 1)
        await asyncio.sleep(PHASE_TIMEOUT_S if any(act.during for act in self.script.acts) else 0)

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._on_task_done)

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            self.errors.append(f"{type(error).__name__}: {error}")

    def _on_decision(self, queue_actor: QueueActor, _: Queue | None) -> None:
        """Starts the acts that wait for the phase that the queue is in now."""
        self._last_queue = queue_actor.queue
        if queue_actor.queue.target_branch.tip is not None:
            self.observed_tips.setdefault(queue_actor.queue.target_branch.tip, len(self.origin))
        if self._waiting:
            phase = self.phase()
            due = [act for act in self._waiting if act.during == phase]
            self._waiting = [act for act in self._waiting if act.during != phase]
            for act in due:
                self.loop.call_later(act.lag / 1000, lambda act=act: self.start(self._perform(act)))

    async def _await_phase(self, act: s.Act) -> None:
        if act.during and act.during != self.phase():
            self._waiting.append(act)
        else:
            await self._perform(act)

    async def _perform(self, act: s.Act) -> None:
        if act.family is not None and act.family in self.script.families:
            self.faults.record(act.family)
        match act:
            case s.Kill():
                await self._kill(act)
            case s.Freeze():
                await self._freeze(act)
            case s.JumpClock():
                await self._jump(act)
            case s.FaultPeriod():
                self.faults.start(act.of, act.percent)
                await asyncio.sleep(act.for_ms / 1000)
                self.faults.end(act.of, act.percent)
            case _:
                await self.people.perform(act)

    async def _kill(self, act: s.Kill) -> None:
        replica = self._replica(act.replica)
        if replica.process.alive:
            replica.kill(loses_its_disk=act.loses_its_disk)
            await asyncio.sleep(act.for_ms / 1000)
            self.loop.create_task(replica.start_again())

    async def _freeze(self, act: s.Freeze) -> None:
        process = self._replica(act.replica).process
        if not process.frozen:
            process.freeze()
            await asyncio.sleep(act.for_ms / 1000)
            process.thaw()

    async def _jump(self, act: s.JumpClock) -> None:
        clock = self._replica(act.replica).clock
        clock.offset_ms += act.by_ms
        await asyncio.sleep(act.for_ms / 1000)
        clock.offset_ms -= act.by_ms

    def _replica(self, which: int) -> SimReplica:
        return self.replicas[which % len(self.replicas)]

    def _running_applications(self) -> list[Any]:
        return [replica.application for replica in self.replicas if replica.answers]

    def _send_notice(self, notice: ForgeNotice) -> None:
        """A notice of the host reaches one replica, if any."""
        if not self.script.has_forge:
            return
        odd = self.faults.occurs(Family.LOST_NOTICES)
        times = self.rng.choice((0, 0, 1, 2)) if odd else 1
        for _ in range(times):
            delay = self.rng.random() * (600 if odd else 1)
            self.loop.call_later(delay, self._deliver_notice, notice)

    def _deliver_notice(self, notice: ForgeNotice) -> None:
        up = [replica for replica in self.replicas if replica.answers]
        if up:
            self.rng.choice(up).service.forge_events.dispatch([notice])

    # Without faults.

    async def _run_until_settled(self) -> None:
        self.faults.clear()
        self._waiting.clear()
        for replica in self.replicas:
            replica.process.thaw()
            replica.clock.offset_ms = 0
            self.loop.create_task(replica.start_again())
        for rounds in range(1, MAX_ROUNDS + 1):
            self.ci.report_all(self._awaited_tips())
            self._resume()
            if rounds > 1:
                self._upload_missing_targets()
            await asyncio.sleep(ROUND_S)
            if self.is_settled() and self._is_observed_or_late(rounds):
                return
        self.errors.append(f"it does not settle without faults: {self.pending_activity()}")

    def _is_observed_or_late(self, rounds: int) -> bool:
        if self.outdated_submissions():
            return rounds >= ROUNDS_TO_OBSERVE
        if self.merged_but_open():
            return rounds >= ROUNDS_TO_FINISH
        is_hidden = self.script.hides_reviews or Family.STALE_READS in self.script.families
        return rounds >= (ROUNDS_TO_OBSERVE_HIDDEN if is_hidden else ROUNDS_TO_OBSERVE) or not self.unseen_approvals()

    def _awaited_tips(self) -> list[Sha]:
        """The tips of runs in progress."""
        queue = self.queue
        return [] if queue is None else [run.tip for run in queue.runs.values() if run.status is RunStatus.IN_PROGRESS]

    def _resume(self) -> None:
        if self.queue is not None and self.queue.state in (QueueState.PAUSED, QueueState.DRAINING):
            self.start(self.people.perform(s.SetState(at=0, state=QueueState.RUNNING)))

    def _upload_missing_targets(self) -> None:
        """Impacted targets that were uploaded and confirmed must be known to the queue by now."""
        queue = self.queue
        if queue is None:
            return
        uploads = [answer.content for answer in self.people.api.responses if answer.path == "setImpactedTargets"]
        confirmed = {(upload["prNumber"], upload["prSha"]) for upload in uploads}
        for submission in _without_targets(queue):
            if queue.config.mode is Mode.PARALLEL and (submission.number, submission.pull_request.head) in confirmed:
                self.errors.append(f"the impacted targets of #{submission.number} were uploaded, and are lost")
            self.start(self.people.perform(s.Upload(at=0, pr=submission.number)))

    def is_settled(self) -> bool:
        return not self.pending_activity()

    def pending_activity(self) -> list[str]:
        """Everything that is still in progress."""
        queue_actor = self._queue_actor
        if queue_actor is None:
            return ["no replica has loaded the queue"]
        queue = queue_actor.queue
        branches = [ref for ref in self.origin.refs if ref.startswith(TEST_BRANCH_PREFIX)]
        people = [str(task.get_coro()) for task in self._tasks]
        runs = [f"{run.id} {run.status}" for run in queue.runs.values() if run.is_active]
        waiting = [
            f"#{submission.number} waits"
            for submission in queue.submissions.values()
            if _waits_for_time(queue, submission, self.loop.now)
        ]
        without_targets = [f"#{submission.number} has no impacted targets" for submission in _without_targets(queue)]
        state = [queue.state] if queue.state is not QueueState.RUNNING else []
        lost = ["the host is unreachable"] if queue.obstacle is not None else []
        stored = self.environment.records.queues[queue_actor.id].version
        outdated = [f"version {queue_actor.version} of {stored} is loaded"] if queue_actor.version != stored else []
        return [
            *branches,
            *people,
            *runs,
            *waiting,
            *without_targets,
            *map(str, pending_tasks(queue)),
            *state,
            *lost,
            *outdated,
        ]

    def outdated_submissions(self) -> list[Submission]:
        """Submissions whose pull request was closed or pushed to, and the queue has not observed it yet."""
        return [
            submission
            for submission, pull_request in self._submitted_pull_requests()
            if not pull_request.is_open or pull_request.head != submission.pull_request.head
        ]

    def unseen_approvals(self) -> list[Submission]:
        """Submissions that wait for an approval that their pull request has."""
        return [
            submission
            for submission, pull_request in self._submitted_pull_requests()
            if submission.state is PullRequestState.NOT_READY
            and submission.pull_request.unmet_requirements
            and not pull_request.unmet_requirements
        ]

    def merged_but_open(self) -> list[PullRequestNumber]:
        """Pull requests that the host shows as open, although all that they have is on the target branch."""
        shown = self.host_state.pull_requests
        is_awaited = self.host_state.notices_heads
        return [
            number
            for number, head, commit in self.merged_heads()
            if is_awaited
            and shown[number].is_open
            and shown[number].base_branch == BRANCH
            and shown[number].head in (head, commit)
            and number not in self.people.reopened
        ]

    def merged_heads(self) -> Iterator[tuple[PullRequestNumber, Sha, Sha]]:
        """Every head that the target branch has as another commit, with that commit."""
        objects, commit = self.origin.objects, self.origin.target
        ours = self._merged_by_service()
        while commits := objects.commits[commit].parents[:1]:
            named = dict[str, str](TRAILER.findall(objects.commits[commit].message))
            if "Head" in named and commit in ours:
                yield PullRequestNumber(int(named["Pull-Request"])), Sha(named["Head"]), commit
            commit = commits[0]

    def _merged_by_service(self) -> set[Sha]:
        """Commits that the service put on the target branch: others can have any trailers."""
        moves = [update for each in self.origin if each.by_service and (update := each.update_of(TARGET))]
        ours = (self.origin.objects.beyond(move.new, [move.old]) for move in moves if move.new and move.old)
        return {commit for commits in ours for commit in commits}

    def count_head_pushes(self) -> dict[str, int]:
        """How often a head branch moved, by who moved it and how."""
        counted, own_moves = Counter[str](), set[tuple[str, Sha | None, Sha | None]]()
        heads = {self.host_state.head_branch_ref(each) for each in self.host_state.pull_requests.values()}
        for transaction in self.origin:
            for update in transaction.updates:
                if update.ref not in heads or (not transaction.by_service and update.old is None):
                    continue
                who = "the queue" if transaction.by_service else "the author"
                way = "moved with the target branch" if transaction.update_of(TARGET) else "moved first"
                if not transaction.by_service:
                    way = "pushed"
                elif (update.ref, update.new, update.old) in own_moves:
                    way = "moved back"
                counted[f"{'deleted' if update.new is None else way} by {who}"] += 1
                own_moves.add((update.ref, update.old, update.new))
        return dict(counted)

    def _submitted_pull_requests(self) -> list[tuple[Submission, PullRequest]]:
        assert self.queue, "no replica has loaded the queue"
        pull_requests = self.host_state.pull_requests
        return [(submission, pull_requests[submission.number]) for submission in self.queue.submissions.values()]

    @property
    def queue(self) -> Queue | None:
        return None if self._queue_actor is None else self._queue_actor.queue

    @property
    def _queue_actor(self) -> QueueActor | None:
        """The actor of the replica that holds the lease, else the one with the latest version."""
        actors = [
            (replica.service.leases.has_lease(queue_actor.key.repo), queue_actor.version, queue_actor)
            for replica in self.replicas
            for queue_actor in replica.service.registry
            if replica.process.alive
        ]
        return max(actors, key=lambda known: known[:2])[2] if actors else None

    def _is_wanted(self, number: PullRequestNumber) -> bool:
        """While no replica is running, the next one will finish the intended landing."""
        queue = self.queue
        landing = None if queue is None else queue.landing
        intended = landing.members if landing is not None and landing.is_intended else ()
        return queue is None or number in {member.number for member in intended}

    def was_approved(self, number: PullRequestNumber, at: Instant) -> bool:
        return [False, *(approved for when, approved in self.reviews[number] if when <= at)][-1]

    def _on_review(self, number: PullRequestNumber, approved: bool) -> None:
        self.reviews[number].append((self.loop.now, approved))
        if approved:
            return
        queue = self.queue or self._last_queue
        submission = None if queue is None else queue.submission_of(number)
        landing = None if queue is None else queue.landing
        moment = "not in the queue" if submission is None else submission.state.replace("_", " ")
        if landing is not None and landing.is_intended and number in {member.number for member in landing.members}:
            moment = "about to be merged"
        self.withdrawals[moment if self.queue else f"{moment}, no server running"] += 1

    def phase(self) -> str:
        """What the queue is doing, the rarest first."""
        queue = self.queue
        if queue is None:
            return "starting"
        statuses = {run.status for run in queue.runs.values()}
        if queue.landing is not None:
            return "landing"
        if queue.bisections:
            return "bisecting"
        if RunStatus.PREPARING in statuses:
            return "building"
        if RunStatus.IN_PROGRESS in statuses:
            return "testing"
        return "waiting" if queue.submissions else "idle"


def _without_targets(queue: Queue) -> list[Submission]:
    """Submissions without impacted targets for their present heads."""
    return [submission for submission in queue.submissions.values() if submission.impacted_targets is None]


def _waits_for_time(queue: Queue, submission: Submission, now: Instant) -> bool:
    """For its batch to fill, or for a host's answer about one ahead."""
    if submission.state is not PullRequestState.PENDING:
        return False
    is_batching = wait_reason(queue, submission, now).reason is Reason.WAITING_FOR_BATCH
    return is_batching or any(unanswered_ahead(queue, (submission,), now))


@contextmanager
def _seeded_randomness(seed: int) -> Generator[None]:
    """Seeds all randomness in the service: its backoff delays and the names it generates."""
    names, urandom = Random(seed), os.urandom
    random.seed(seed)
    os.urandom = names.randbytes
    try:
        yield
    finally:
        os.urandom = urandom


def _initial_files(script: s.Script) -> dict[str, str]:
    statuses = ", ".join(f'"{status}"' for status in script.statuses)
    files = {"README": "hello", ".mergeyard.toml": f"version = 1\nrequired_statuses = [{statuses}]\n"}
    return files | ({"breakage": "broken"} if script.nature.base_is_broken else {})


def _to_request(script: s.Script) -> dict[str, Any]:
    settings = asdict(script.config).items()
    return {_camel(name): to_builtins(value) for name, value in settings if name not in SETTINGS_WITHOUT_EFFECT}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
