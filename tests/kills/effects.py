"""Names of effects: a commit has one name per kind of write in it, a push has one for what it does to the refs."""

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum

from mergeyard.api.routes import TABLE
from mergeyard.domain import ids
from mergeyard.domain.queue import Landing, LandingPhase
from mergeyard.ports import writes as w
from mergeyard.ports.git import RefUpdate
from mergeyard.ports.writes import QueuePart, SaveDecision, Write
from mergeyard.service.git_names import branch_ref
from mergeyard.service.persistence import part_decoders
from tests.kills.killer import Moment

WRITE_NAMES: dict[type[Write], str] = {
    w.CreateQueue: "queue_created",
    w.DeleteQueue: "queue_deleted",
    w.SaveDecision: "decision",
    w.AppendEntries: "entries",
    w.SaveImpactedTargets: "impacted_targets",
    w.SaveStatus: "status",
    w.SaveResponse: "response",
    w.DeleteExpiredResponses: "responses_deleted",
    w.AssertLease: "lease",
    w.SaveToken: "token",
    w.RecordTokenUse: "token_use",
    w.SaveSession: "session",
    w.DeleteSession: "session_deleted",
    w.DeleteSsoSessions: "sso_sessions_deleted",
    w.DeleteExpiredSessions: "sessions_deleted",
    w.DeleteExpired: "expired_deleted",
    w.StartConsumer: "consumer_started",
    w.MoveCursor: "cursor",
    w.MarkStalled: "stalled",
    w.ClearStalled: "stalled_cleared",
    w.DeleteConsumer: "consumer_deleted",
    w.SaveThreadState: "thread_state",
    w.SaveWebhook: "webhook",
    w.DeleteWebhook: "webhook_deleted",
    w.SaveDelivery: "delivery",
}
PHASE_NAMES = {
    LandingPhase.REBASING: "landing_chosen",
    LandingPhase.READING: "landing_chosen",
    LandingPhase.INTENDED: "landing_intended",
}
DECISION_PART_NAMES = (*dict.fromkeys(PHASE_NAMES.values()), "landing_over", "submission_ended", "run_ended")
CREATED, DELETED, WITHDRAWN = "branch_created", "branch_deleted", "branch_withdrawn"
LANDING = "landing"
HEAD_MOVED, HEAD_DELETED = "head_moved", "head_deleted"
"""Of pull requests: moved alone, to the commit that is about to land or back; deleted after the merge."""


def commit_names(writes: Sequence[Write]) -> list[str]:
    kinds = dict.fromkeys(kind for write in writes for kind in kinds_of(write))
    return [f"store.commit:{kind}" for kind in kinds]


def kinds_of(write: Write) -> Iterator[str]:
    yield WRITE_NAMES[type(write)]
    if isinstance(write, SaveDecision):
        yield from (landing_step(part) for part in write.parts if part.kind == "landing")
        yield from ("submission_ended" for row in write.submissions if not row.live)
        yield from ("run_ended" for run in write.runs if not run.live)


def landing_step(part: QueuePart) -> str:
    if part.body is None:
        return "landing_over"
    landing: Landing = part_decoders[part.kind].decode(part.body)
    return PHASE_NAMES[landing.phase]


def push_kind(updates: Sequence[RefUpdate]) -> str:
    match updates:
        case [RefUpdate(ref=target), RefUpdate(ref=branch), *_] if not is_test_branch(target) and is_test_branch(
            branch
        ):
            return LANDING
        case [RefUpdate(new=new), *_] if not any(is_test_branch(update.ref) for update in updates):
            return HEAD_DELETED if new is None else HEAD_MOVED
        case [RefUpdate(old=None)]:
            return CREATED
        case [RefUpdate(new=None)]:
            return DELETED
        case [RefUpdate()]:
            return WITHDRAWN
        case _:
            raise AssertionError(f"This push has no name: {updates}")


def is_test_branch(ref: str) -> bool:
    return ref.startswith(branch_ref(ids.TEST_BRANCH_PREFIX))


class StoreKind(StrEnum):
    SQLITE = "sqlite"
    POSTGRES = "postgres"


UNREACHABLE_COMMITS = {
    "sso_sessions_deleted": "only with an identity provider",
    "thread_state": "only on forges that have comments",
    "expired_deleted": "only when records are days old",
}
"""What the servers of this campaign never write, and why."""

COMMITS = (*WRITE_NAMES.values(), *DECISION_PART_NAMES)
PUSHES = (CREATED, LANDING, DELETED, WITHDRAWN, HEAD_MOVED, HEAD_DELETED)
RESPONSES = (*(name for name, row in TABLE.items() if row.get("writes")), "read", "refusal", "page")
EFFECTS = (
    *(f"store.commit:{kind}" for kind in COMMITS if kind not in UNREACHABLE_COMMITS),
    *(f"git.push:{kind}" for kind in PUSHES),
    *(f"response:{name}" for name in RESPONSES),
    *("git.fetch", "git.mirror_created", "git.export", "host.mark_merged", "webhook.send"),
    *("check.start", "check.stop", "check.started", "check.ended"),
    *("store.open", "store.migrate"),
    *("store.close", "check.close", "host.close"),
    *("store.register", "store.renew_leases", "store.acquire_leases", "store.unregister", "store.notify"),
)
REPLICA_EFFECTS = (
    *("store.commit:lease", "store.register", "store.renew_leases", "store.acquire_leases"),
    *("store.unregister", "store.notify"),
)
"""Effects that occur only on a store that replicas share."""
OBSERVED_AFTERWARDS = ("check.started", "check.ended")
"""What a check process does: the server learns of it afterwards."""
AT_FIRST_START = ("store.migrate",)
"""Effects on a new database only."""
AT_SHUTDOWN = ("store.close", "check.close", "host.close", "store.unregister")
"""Effects of a graceful shutdown."""

ANYWHERE = "anywhere"
"""A kill from outside, at a moment that depends on the machine."""

AROUND_LANDINGS = ("landing", "mark_merged", "branch_created", "submission_ended", "head_moved")
"""Boundaries at which servers are killed most often: a mistake there does the most harm."""


def list_boundaries(store: StoreKind) -> Iterator[str]:
    for effect in EFFECTS:
        if store is StoreKind.POSTGRES or effect not in REPLICA_EFFECTS:
            yield from (f"{effect}:{moment}" for moment in moments_of(effect))
    yield ANYWHERE


def moments_of(effect: str) -> Iterable[Moment]:
    return (Moment.AFTER,) if effect in OBSERVED_AFTERWARDS else Moment


def effect_of(boundary: str) -> str:
    return boundary.rpartition(":")[0]


def boundary_weight(boundary: str) -> float:
    return 3.0 if any(word in boundary for word in AROUND_LANDINGS) else 1.0
