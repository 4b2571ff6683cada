"""A state machine over the HTTP API: every rule asks for something, and knows what it must be answered."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.fuzz.machine.client import Client
from tests.fuzz.machine.grounds import BRANCHES, PULLS, Grounds, show
from tests.fuzz.machine.model import PEOPLE, Pull, QueueModel, Stay, refusal
from tests.fuzz.machine.watching import Watcher
from tests.support.scenario import MINUTE, SECOND

people = st.sampled_from(["operator"] * 12 + list(PEOPLE))
places = st.sampled_from(["here"] * 6 + ["there"])
branches = st.sampled_from(["main"] * 6 + ["release"])
numbers = st.sampled_from([*PULLS, *PULLS, 99])
several = st.lists(st.sampled_from(list(PULLS)), unique=True, max_size=4)
keyed = st.booleans()
settings = st.fixed_dictionaries(
    {},
    optional={
        "concurrency": st.integers(1, 4),
        "batch": st.booleans(),
        "batchingMinSize": st.integers(1, 3),
        "mode": st.sampled_from(["single", "parallel"]),
        "mergeMethod": st.sampled_from(["merge_commit", "squash", "rebase"]),
        "canOptimisticallyMerge": st.booleans(),
        "pendingFailureDepth": st.integers(0, 2),
        "testRetries": st.integers(0, 1),
        "requiredStatuses": st.sampled_from([["unit"], None]),
    },
)
wishes = st.fixed_dictionaries(
    {}, optional={"priority": st.sampled_from([0, 10, 33, "low", "URGENT"]), "noBatch": st.booleans()}
)
SPOILT: list[dict[str, Any]] = [
    {"concurrency": 0},
    {"concurency": 3},
    {"mode": "fast"},
    {"batch": None},
    {"requiredStatuses": []},
    {"state": "GONE"},
]
targets = st.lists(st.sampled_from(["//a", "//b", "//c"]), max_size=3) | st.just("ALL")


class Story(RuleBasedStateMachine):
    grounds: Grounds

    def __init__(self) -> None:
        super().__init__()
        self.client = Client(self.grounds)
        self.watcher = Watcher(self.client)
        self.queues = {(place, branch): QueueModel() for place in self.client.places for branch in BRANCHES}
        self.pulls = {
            (name, number): Pull(place.origin.tip(f"topic{number}"))
            for name, place in self.client.places.items()
            for number in PULLS
        }

    # Queues

    @initialize(given=settings, submitted=several)
    def begin(self, given: dict[str, Any], submitted: list[int]) -> None:
        """Most stories are about one queue, and begin in the middle of it."""
        self.create("here", "main", given, "operator", keyed=True)
        self.submit_several(submitted, {})

    @rule(place=places, branch=branches, given=settings, who=people, keyed=keyed)
    def create(self, place: str, branch: str, given: dict[str, Any], who: str, keyed: bool) -> None:
        queue = self.queues[place, branch]
        told = self.client.ask(who, "createQueue", self.client.queue(place, branch) | given, keyed=keyed)
        wanted = refusal(PEOPLE[who], "createQueue", place) or ("queue_already_exists" if queue.exists else None)
        if self._agrees(told, wanted):
            queue.exists, queue.settings = True, dict(given)

    @rule(place=places, branch=branches, given=settings, who=people, keyed=keyed)
    def update(self, place: str, branch: str, given: dict[str, Any], who: str, keyed: bool) -> None:
        queue = self.queues[place, branch]
        told = self.client.ask(who, "updateQueue", self.client.queue(place, branch) | given, keyed=keyed)
        if told == "mode_switch_in_progress":
            assert given.get("mode") != queue.settings.get("mode", "single")
        elif self._agrees(told, self._missing(who, "updateQueue", place, branch)):
            queue.settings |= given

    @rule(place=places, branch=branches, state=st.sampled_from(["RUNNING", "PAUSED", "DRAINING"]), keyed=keyed)
    def switch(self, place: str, branch: str, state: str, keyed: bool) -> None:
        queue = self.queues[place, branch]
        told = self.client.ask(
            "operator", "updateQueue", self.client.queue(place, branch) | {"state": state}, keyed=keyed
        )
        if self._agrees(told, self._missing("operator", "updateQueue", place, branch)):
            queue.settings["state"] = state
            queue.resting_at = self.client.places[place].tip(branch) if state == "PAUSED" else None

    @rule(place=places, branch=branches, given=settings, bad=st.sampled_from(SPOILT))
    def spoil(self, place: str, branch: str, given: dict[str, Any], bad: dict[str, Any]) -> None:
        told = self.client.ask("operator", "updateQueue", self.client.queue(place, branch) | given | bad)
        assert told in ("invalid_request", "unknown_field")

    @rule(place=places, branch=branches, who=people, keyed=keyed)
    def delete(self, place: str, branch: str, who: str, keyed: bool) -> None:
        queue = self.queues[place, branch]
        told = self.client.ask(who, "deleteQueue", self.client.queue(place, branch), keyed=keyed)
        full = any(not stay.ended for stay in queue.stays)
        if self._agrees(
            told, self._missing(who, "deleteQueue", place, branch) or ("queue_not_empty" if full else None)
        ):
            queue.forget()

    # Pull requests

    @rule(place=places, branch=branches, number=numbers, wish=wishes, who=people, keyed=keyed)
    def submit(self, place: str, branch: str, number: int, wish: dict[str, Any], who: str, keyed: bool) -> None:
        queue, pull = self.queues[place, branch], self.pulls.get((place, number))
        body = self.client.queue(place, branch) | {"pr": {"number": number}} | wish
        told = self.client.ask(who, "submitPullRequest", body, keyed=keyed)
        wanted = self._missing(who, "submitPullRequest", place, branch, wish) or (None if pull else "pr_not_found")
        active = queue.active(number)
        if wanted is None and pull is not None and pull.state == "closed":
            assert told == "pr_closed" or (active is not None and isinstance(told, dict))
            return
        if wanted is None and told == "pr_already_merged":
            assert any(stay.state == "merged" for each in self.queues.values() for stay in each.stays)
            return
        if self._agrees(told, wanted) and isinstance(told, dict):
            assert pull is not None
            assert told["prSha"] == pull.head
            if active is None or (pull.touched and told["id"] != active.id):
                assert told["id"] not in {stay.id for stay in queue.stays}
                queue.stays.append(Stay(told["id"], number))
            assert told["id"] == queue.stays[-1].id or (active is not None and told["id"] == active.id)

    @rule(several=several, wish=wishes)
    def submit_several(self, several: list[int], wish: dict[str, Any]) -> None:
        for number in several:
            self.submit("here", "main", number, wish, "operator", keyed=False)
            self.every_queue_is_as_it_was_answered()

    @rule(place=places, branch=branches, number=numbers, sha=st.sampled_from(["0" * 40, "F" * 64]))
    def submit_another_head(self, place: str, branch: str, number: int, sha: str) -> None:
        body = self.client.queue(place, branch) | {"pr": {"number": number, "sha": sha}}
        told = self.client.ask("operator", "submitPullRequest", body)
        missing = self._missing("operator", "submitPullRequest", place, branch)
        assert told == (missing or ("sha_mismatch" if number in PULLS else "pr_not_found"))

    @rule(place=places, branch=branches, number=numbers, who=people, keyed=keyed)
    def cancel(self, place: str, branch: str, number: int, who: str, keyed: bool) -> None:
        queue = self.queues[place, branch]
        stay = queue.last(number)
        told = self.client.ask(
            who, "cancelPullRequest", self.client.queue(place, branch) | {"pr": {"number": number}}, keyed=keyed
        )
        wanted = self._missing(who, "cancelPullRequest", place, branch)
        if wanted is None and stay is None:
            wanted = "pr_not_submitted"
        elif wanted is None and stay is not None and stay.state in ("merged", "failed"):
            wanted = "pr_not_in_queue"
        if self._agrees(told, wanted) and isinstance(told, dict):
            assert stay is not None
            assert (told["id"], told["state"]) == (stay.id, "cancelled")
            stay.cancelled = True

    @rule(place=places, branch=branches, number=numbers, who=people, keyed=keyed)
    def restart(self, place: str, branch: str, number: int, who: str, keyed: bool) -> None:
        stay = self.queues[place, branch].last(number)
        body = self.client.queue(place, branch) | {"pr": {"number": number}}
        told = self.client.ask(who, "restartTestsOnPullRequest", body, keyed=keyed)
        wanted = self._missing(who, "restartTestsOnPullRequest", place, branch)
        if wanted is None and stay is None:
            wanted = "pr_not_submitted"
        elif wanted is None and stay is not None and stay.state not in ("testing", "pending_failure"):
            wanted = "tests_not_running"
        self._agrees(told, wanted)

    @rule(place=places, branch=branches, number=numbers, given=targets, who=people, keyed=keyed)
    def set_targets(self, place: str, branch: str, number: int, given: Any, who: str, keyed: bool) -> None:
        body = self.client.queue(place, branch) | {"pr": {"number": number}, "impactedTargets": given}
        told = self.client.ask(who, "setImpactedTargets", body, keyed=keyed)
        wanted = self._missing(who, "setImpactedTargets", place, branch)
        if self._agrees(told, wanted or (None if number in PULLS else "pr_not_found")) and isinstance(told, dict):
            assert told["impactedTargets"] == ("ALL" if given == "ALL" else len(set(given)))

    # What CI and people at the host do

    @rule(place=places, branch=branches, verdicts=st.lists(st.sampled_from(["success"] * 3 + ["failure"]), max_size=4))
    def report(self, place: str, branch: str, verdicts: list[str]) -> None:
        """One on each run, as far as they go; the runs that follow from it are for later."""
        queue = self.client.queue(place, branch)
        for run_id, verdict in zip(self._runs(place, branch), verdicts, strict=False):
            run = self.client.read("getMergeQueueTestingDetails", queue | {"testRunId": run_id})
            body = {"repo": queue["repo"], "sha": run["testBranchSha"], "context": "unit", "state": verdict}
            if verdict == "success":
                self.watcher.green.add(run["testBranchSha"])
            assert self.client.ask("ci", "reportCommitStatus", body) == {"accepted": True}

    @rule(place=places, sha=st.sampled_from(["1" * 40, "a" * 64]), who=people)
    def report_nonsense(self, place: str, sha: str, who: str) -> None:
        body = {"repo": self.client.places[place].reference, "sha": sha, "context": "unit", "state": "success"}
        told = self.client.ask(who, "reportCommitStatus", body)
        self._agrees(told, refusal(PEOPLE[who], "reportCommitStatus", place))

    @rule(place=places, number=st.sampled_from(list(PULLS)), how=st.sampled_from(["push", "draft", "close", "open"]))
    def change_at_the_host(self, place: str, number: int, how: str) -> None:
        origin, pull = self.client.places[place].origin, self.pulls[place, number]
        if how == "push":
            pull.head = origin.commit(f"topic{number}", {f"file{number}": f"{pull.head}\n"})
        pull.draft = how == "draft" or (pull.draft and how != "open")
        pull.state = {"close": "closed", "open": "open"}.get(how, pull.state)
        pull.touched = True
        show(origin, number, draft=pull.draft, state=pull.state)

    @rule(span=st.sampled_from([SECOND, SECOND, 10 * MINUTE, 6 * 60 * MINUTE]))
    def time_passes(self, span: int) -> None:
        self.grounds.time_passes(span)
        for pull in self.pulls.values():
            pull.touched = False

    # The same again, and what others may not see

    @precondition(lambda self: self.client.kept)
    @rule(at=st.integers(0, 100))
    def ask_again(self, at: int) -> None:
        self.client.ask_again(self.client.kept[at % len(self.client.kept)])

    @rule(
        branch=branches, endpoint=st.sampled_from(["getQueue", "deleteQueue", "listPullRequests", "submitPullRequest"])
    )
    def look_from_outside(self, branch: str, endpoint: str) -> None:
        self.client.looks_like_nothing("here", branch, endpoint, {"pr": {"number": 1}} if "submit" in endpoint else {})

    @rule(who=st.sampled_from(list(PEOPLE)))
    def list_queues(self, who: str) -> None:
        told = self.client.ask(who, "listQueues", {})
        person = PEOPLE[who]
        if not self._agrees(told, refusal(person, "listQueues", person.place or "here")) or isinstance(told, str):
            return
        names = {place.name: at for at, place in self.client.places.items()}
        seen = {
            (names[queue["repo"]["name"]], queue["branch"])
            for queue in told["queues"]
            if queue["repo"]["name"] in names
        }
        assert seen == {at for at, queue in self.queues.items() if queue.exists and person.place in (None, at[0])}

    @invariant()
    def every_queue_is_as_it_was_answered(self) -> None:
        for (place, branch), queue in self.queues.items():
            self.watcher.watch(place, branch, queue, take=2)

    def teardown(self) -> None:
        """What is cancelled goes, and then the queue can go as well."""
        for (place, branch), queue in self.queues.items():
            for stay in [stay for stay in queue.stays if not stay.ended]:
                body = self.client.queue(place, branch) | {"pr": {"number": stay.number}}
                self.client.ask("operator", "cancelPullRequest", body)
            if queue.exists:
                told = self.client.ask("operator", "deleteQueue", self.client.queue(place, branch))
                assert isinstance(told, dict), told

    def _agrees(self, told: dict[str, Any] | str, wanted: str | None) -> bool:
        """Whether it was done; a refusal must be the one that was wanted."""
        assert wanted == (told if isinstance(told, str) else None), told
        return wanted is None

    def _missing(
        self, who: str, endpoint: str, place: str, branch: str, wish: dict[str, Any] | None = None
    ) -> str | None:
        exists = self.queues[place, branch].exists
        return refusal(PEOPLE[who], endpoint, place, wish) or (None if exists else "queue_not_found")

    def _runs(self, place: str, branch: str) -> list[str]:
        """Of all that are under test."""
        if not self.queues[place, branch].exists:
            return []
        shown = self.client.read("getQueue", self.client.queue(place, branch))
        found = (pull["testRunId"] for pull in shown["enqueuedPullRequests"] if pull["state"] in ("testing", "pending"))
        return list(dict.fromkeys(run for run in found if run))
