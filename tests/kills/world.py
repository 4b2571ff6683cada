"""A world in which a server dies again and again while people work with its queues, and its judgement."""

from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from random import Random
from typing import Any

from msgspec import Struct

from tests.kills.administrators import SCRATCH, Administrators
from tests.kills.boundaries import StoreKind
from tests.kills.crowd import Crowd
from tests.kills.insisting import InsistingApi
from tests.kills.mortal_server import MortalServer
from tests.kills.own_checks import OwnChecks, config
from tests.kills.subscriber import Subscriber
from tests.kills.toll import Toll
from tests.replicas.innocence import wronged
from tests.replicas.world import give_up_whoever_cannot_become_ready
from tests.support.api import QUEUE
from tests.support.host_log import HostLog
from tests.support.patience import eventually
from tests.support.postgres import shared_server
from tests.support.premises import new_token
from tests.support.promises import broken_promises
from tests.support.receiver import Receiver
from tests.support.repositories import Files, Origin
from tests.support.surroundings import Surroundings

SETTINGS: tuple[dict[str, Any], ...] = (
    {"concurrency": 3, "directMergeMode": "always"},
    {"batch": True, "batchingMinSize": 3, "batchingMaxWaitTimeMinutes": 0, "mergeMethod": "squash"},
    {"mode": "parallel", "mergeMethod": "rebase"},
    {"batch": True, "batchingMinSize": 2, "batchingMaxWaitTimeMinutes": 0},
    {"canOptimisticallyMerge": True, "pendingFailureDepth": 1, "mergeMethod": "squash", "directMergeMode": "always"},
)
OWN = """
[hosts."own.local"]
provider = "git"
root = "own"
checks = "run"
"""
END_OF_LEASE = "UPDATE replicas SET until = now() - interval '1 second'"
"""The dead are dead: nobody needs to wait ten seconds to be sure of it."""
BIRTHS = 2
"""Deaths upon a database that is only just being made."""


class Outcome(Struct):
    decided: int = 0
    merged: int = 0
    landings: int = 0
    answers: int = 0
    repeated: int = 0
    events: int = 0

    def add(self, other: "Outcome") -> None:
        for field in self.__struct_fields__:
            setattr(self, field, getattr(self, field) + getattr(other, field))

    def __str__(self) -> str:
        submissions = f"{self.decided} submissions decided ({self.merged} merged), {self.landings} landings checked"
        answers = f"{self.answers} answers kept, {self.repeated} of them asked for again after a death"
        return f"{submissions}, {answers}, {self.events} events told: every promise held"


class World:
    def __init__(self, folder: Path, seed: int, toll: Toll, births: int = BIRTHS) -> None:
        self._folder = folder
        self._random = Random(f"{seed} {toll.store}")
        self._toll = toll
        self._database = shared_server().fresh_database() if toll.store is StoreKind.POSTGRES else None
        self._closing = ExitStack()
        self._server = self._prepare_server()
        self._closing.callback(self._end_server)
        try:
            self._be_born(births)
            self._token = new_token(self._server.config)
            self._queues = [self._with_ci(), self._with_own_checks()]
            self._subscriber = self._subscribe()
            self._queues[0].create_queue(**SETTINGS[seed % len(SETTINGS)])
            self._queues[1].api.post("createQueue")
            self._crowds = self._invite()
        except BaseException:
            self.close()
            raise

    # Before anybody dies

    def _prepare_server(self) -> MortalServer:
        settings: dict[str, object] = {"allow_private_webhooks": True, "sealing_key_file": "seal"}
        settings["runner_sandbox"] = "none"  # its checks write into a log outside of their checkout
        if self._database is not None:
            settings["database_url"] = self._database
        server = MortalServer(self._folder, self._toll, self._random, **settings)
        (self._folder / "own").mkdir()
        server.config.write_text(server.config.read_text() + OWN)
        return server

    def _be_born(self, births: int) -> None:
        self._server.try_to_be_born(births)
        self._server.live()
        if self._database is not None:
            name = self._database.rpartition("/")[2]
            self._server.when_dead = lambda: shared_server().run(END_OF_LEASE, name)

    def _with_ci(self) -> Surroundings:
        origin, host_log = self._repository("repos", {"README": "1"})
        return Surroundings(origin, host_log, self._api("git.local", host_log))

    def _with_own_checks(self) -> Surroundings:
        log = self._folder / "passed"
        origin, host_log = self._repository("own", {"README": "1", ".mergeyard.toml": config(log)})
        return OwnChecks(origin, host_log, self._api("own.local", host_log), log)

    def _repository(self, root: str, files: Files) -> tuple[Origin, HostLog]:
        origin = Origin.made(self._folder / root / "acme" / "app.git")
        origin.commit("main", files)
        return origin, HostLog(origin, self._folder / f"host-{root}")

    def _api(self, host: str, host_log: HostLog) -> InsistingApi:
        queue = QUEUE | {"repo": QUEUE["repo"] | {"host": host}}
        api = InsistingApi(self._server, self._token, host_log, queue)
        self._closing.callback(api.close)
        return api

    def _subscribe(self) -> Subscriber:
        subscriber = Subscriber()
        self._closing.enter_context(subscriber.receiver.open())
        self._queues[0].api.post("createWebhook", url=subscriber.receiver.url)
        return subscriber

    def _invite(self) -> list[Crowd]:
        first, second = (Crowd(queue, self._random) for queue in self._queues)
        receiver = self._closing.enter_context(Receiver().open())
        self._queues[0].origin.branch(SCRATCH, upon="main")
        first.also(Administrators(self._server, self._queues[0].api, self._random, receiver, self._token).deeds)
        return [first, second]

    # While they die

    def run(self, deaths: int) -> Outcome:
        self._server.expose()
        while self._server.deaths < deaths:
            for crowd in self._crowds:
                crowd.act_towards(self._server.effects_to_die_of)
            self._keep_dying()
        self._server.live()
        return self._judged()

    def _keep_dying(self) -> None:
        if not self._server.alive:
            self._server.rise()
        elif self._server.wants_to_be_ended and self._random.random() < 0.3:
            self._server.end()

    # When all is fair again

    def _judged(self) -> Outcome:
        for queue in self._queues:
            queue.update_queue(state="RUNNING")
        for queue in self._queues:
            give_up_whoever_cannot_become_ready(queue)
        self._sweep()
        outcome = Outcome()
        for queue in self._queues:
            outcome.add(self._judged_queue(queue))
        complaints = self._server.complaints()
        assert not complaints, complaints
        return outcome

    def _sweep(self) -> None:
        """A push that outlived its server may bring a test branch when its run is over: a start sweeps it up."""
        self._server.stop()
        eventually(lambda: not stragglers(self._folder), but=lambda: stragglers(self._folder))
        self._server.live()

    def _judged_queue(self, queue: Surroundings) -> Outcome:
        queue.wait_for_cleanliness()
        evidence = queue.evidence
        evidence.collect()
        broken = [*broken_promises(evidence), *wronged(evidence), *shown_wrongly(queue)]
        assert not broken, "\n".join([str(queue.api.queue), *broken])
        assert queue.ci.verdict(queue.origin.tip("main")) == "success"
        assert isinstance(queue.api, InsistingApi)
        return Outcome(
            decided=len(evidence.stays),
            merged=sum(stay["state"] == "merged" for stay in evidence.stays.values()),
            landings=len(evidence.landings),
            answers=len(queue.api.answers),
            repeated=queue.api.repeated,
            events=self._subscriber.check(queue.api),
        )

    def _end_server(self) -> None:
        if self._server.alive:
            self._server.kill()

    def close(self) -> None:
        self._closing.close()


def shown_wrongly(queue: Surroundings) -> Iterator[str]:
    """Who landed, and was not pushed to since, is shown as merged at the host."""
    for stay in queue.evidence.stays.values():
        number, head = stay["prNumber"], queue.origin.tip(f"refs/pull/{stay['prNumber']}/head")
        if stay["state"] == "merged" and head == stay["prSha"] and queue.meta(number)["state"] != "merged":
            yield f"#{number} is merged, and the host shows it as {queue.meta(number)['state']}"


def stragglers(folder: Path) -> list[str]:
    """Every git that a server started, and every one at a repository, names its folder."""
    found = list[str]()
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = process.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if str(folder) in words and words.startswith("git"):
                found.append(words)
    return found
