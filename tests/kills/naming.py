"""Gives every effect its names: a commit those of all that it writes, a push that of what it does to the refs."""

from collections.abc import Iterator, Sequence

from mergeyard.domain import ours
from mergeyard.domain.landing import Landing, Phase
from mergeyard.ports import writes as w
from mergeyard.ports.git import RefUpdate
from mergeyard.ports.writes import Fact, SaveTurn, Write
from mergeyard.service.naming_branches import branch_ref
from mergeyard.service.shelving import decoders

OF_WRITE: dict[type[Write], str] = {
    w.CreateQueue: "queue_created",
    w.DeleteQueue: "queue_deleted",
    w.SaveTurn: "turn",
    w.AppendEntries: "entries",
    w.KeepTargets: "targets",
    w.KeepStatus: "status",
    w.KeepAnswer: "answer",
    w.ForgetAnswers: "answers_forgotten",
    w.ProveDuty: "duty",
    w.SaveToken: "token",
    w.RecordTokenUse: "token_use",
    w.SaveSession: "session",
    w.DropSession: "session_dropped",
    w.DropVouchedFor: "vouched_for_dropped",
    w.ForgetSessions: "sessions_forgotten",
    w.DeleteExpired: "expired_deleted",
    w.BeginTelling: "telling_begun",
    w.MoveCursor: "cursor",
    w.NoteStuck: "stuck",
    w.TakeHeart: "heart_taken",
    w.ForgetTeller: "teller_forgotten",
    w.KeepConversation: "conversation",
    w.SaveWebhook: "webhook",
    w.DropWebhook: "webhook_dropped",
    w.KeepDelivery: "delivery",
}
OF_PHASE = {
    Phase.COMPOSING: "landing_chosen",
    Phase.READING: "landing_chosen",
    Phase.INTENDED: "landing_intended",
}
PART_OF_TURN = (*dict.fromkeys(OF_PHASE.values()), "landing_over", "stay_ended", "run_let_go")
MADE, DELETED, WITHDRAWN = "branch_made", "branch_deleted", "branch_withdrawn"
LANDING, DIRECT_LANDING = "landing", "direct_landing"


def commit_names(writes: Sequence[Write]) -> list[str]:
    kinds = dict.fromkeys(kind for write in writes for kind in kinds_of(write))
    return [f"store.commit:{kind}" for kind in kinds]


def kinds_of(write: Write) -> Iterator[str]:
    yield OF_WRITE[type(write)]
    if isinstance(write, SaveTurn):
        yield from (landing_step(fact) for fact in write.facts if fact.shelf == "landing")
        yield from ("stay_ended" for stay in write.stays if not stay.live)
        yield from ("run_let_go" for run in write.runs if not run.live)


def landing_step(fact: Fact) -> str:
    if fact.body is None:
        return "landing_over"
    landing: Landing = decoders[fact.shelf].decode(fact.body)
    return OF_PHASE[landing.phase]


def push_kind(updates: Sequence[RefUpdate]) -> str:
    match updates:
        case [RefUpdate(ref=ref), RefUpdate()] if not is_test_branch(ref):
            return LANDING
        case [RefUpdate(ref=ref)] if not is_test_branch(ref):
            return DIRECT_LANDING
        case [RefUpdate(old=None)]:
            return MADE
        case [RefUpdate(new=None)]:
            return DELETED
        case [RefUpdate()]:
            return WITHDRAWN
        case _:
            raise AssertionError(f"nobody has given this push a name: {updates}")


def is_test_branch(ref: str) -> bool:
    return ref.startswith(branch_ref(ours.BRANCHES))
