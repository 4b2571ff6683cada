"""Puts each kind of write into statements. Whoever calls them holds a transaction."""

from collections.abc import Iterable, Sequence
from typing import assert_never

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from mergeyard.adapters.store_postgres.asking import rows, value
from mergeyard.adapters.store_postgres.handles import Connection, Value
from mergeyard.domain.repositories import Repo
from mergeyard.domain.sessions import Session
from mergeyard.domain.tokens import Token
from mergeyard.ports.store import (
    DELIVERIES_KEPT,
    HEADS_WITH_TARGETS,
    MAX_UNCLAIMED_STATUSES,
    Answered,
    Outrun,
    Relieved,
    Taken,
)
from mergeyard.ports.writes import (
    AppendEntries,
    BeginTelling,
    CreateQueue,
    DeleteExpired,
    DeleteQueue,
    DropSession,
    DropVouchedFor,
    DropWebhook,
    EntryRow,
    ForgetAnswers,
    ForgetSessions,
    ForgetTeller,
    KeepAnswer,
    KeepConversation,
    KeepDelivery,
    KeepStatus,
    KeepTargets,
    MoveCursor,
    NoteStuck,
    ProveDuty,
    RecordKind,
    RecordTokenUse,
    RunRow,
    SaveSession,
    SaveToken,
    SaveTurn,
    SaveWebhook,
    StayRow,
    TakeHeart,
    WebhookRow,
    Write,
)

REMEMBERED_TURNS = 1000
"""For so many turns it is known which facts they dropped."""


class ToldTurn(Struct, frozen=True):
    """A turn and what the journal tells of it: one statement writes both."""

    turn: SaveTurn
    entries: tuple[EntryRow, ...]


def joined(writes: Sequence[Write]) -> list[Write | ToldTurn]:
    """Entries that follow the turn that they tell of become part of it."""
    whole = list[Write | ToldTurn]()
    for write in writes:
        turn = whole[-1] if whole else None
        if isinstance(write, AppendEntries) and isinstance(turn, SaveTurn) and _is_about(write, turn):
            whole[-1] = ToldTurn(turn, write.entries)
        else:
            whole.append(write)
    return whole


def _is_about(entries: AppendEntries, turn: SaveTurn) -> bool:
    return all(entry.queue == turn.queue for entry in entries.entries)


async def perform(connection: Connection, write: Write | ToldTurn) -> None:
    match write:
        case ToldTurn():
            await save_turn(connection, write.turn, write.entries)
        case SaveTurn():
            await save_turn(connection, write, ())
        case AppendEntries():
            await rows(connection, "append_entries", **columns(EntryRow, write.entries))
        case ProveDuty():
            await prove_duty(connection, write)
        case KeepAnswer():
            await keep_answer(connection, write)
        case KeepStatus():
            await keep_status(connection, write)
        case KeepTargets():
            await rows(connection, "keep_targets", **asdict(write), others=HEADS_WITH_TARGETS - 1)
        case CreateQueue():
            await create_queue(connection, write)
        case DeleteQueue():
            await delete_queue(connection, write)
        case ForgetAnswers():
            await rows(connection, "forget_answers", **asdict(write))
        case SaveToken():
            await save_token(connection, write.token)
        case RecordTokenUse():
            await rows(connection, "record_token_use", **asdict(write))
        case SaveSession():
            await save_session(connection, write.session)
        case DropSession():
            await rows(connection, "drop_session", **asdict(write))
        case DropVouchedFor():
            await rows(connection, "drop_vouched_for")
        case ForgetSessions():
            await rows(connection, "forget_sessions", **asdict(write))
        case DeleteExpired():
            await delete_expired(connection, write)
        case BeginTelling():
            await rows(connection, "begin_telling", **asdict(write))
        case MoveCursor():
            await rows(connection, "move_cursor", **asdict(write))
        case NoteStuck():
            await rows(connection, "note_stuck", **asdict(write))
        case TakeHeart():
            await rows(connection, "take_heart", **asdict(write))
        case ForgetTeller():
            await rows(connection, "forget_teller", **asdict(write))
        case KeepConversation():
            await rows(connection, "keep_conversation", **asdict(write))
        case SaveWebhook():
            await save_webhook(connection, write.webhook)
        case DropWebhook():
            await rows(connection, "drop_webhook", **asdict(write))
        case KeepDelivery():
            await rows(connection, "keep_delivery", **asdict(write), kept=DELIVERIES_KEPT)
        case _:
            assert_never(write)


async def save_turn(connection: Connection, turn: SaveTurn, entries: Iterable[EntryRow]) -> None:
    facts = {(fact.shelf, fact.key): fact.body for fact in turn.facts}
    kept = [(*place, body) for place, body in facts.items() if body is not None]
    gone = [place for place, body in facts.items() if body is None]
    stays = {stay.ticket: stay for stay in turn.stays}
    runs = {run.id: run for run in turn.runs}
    taken = await value(
        connection,
        "save_turn",
        queue=turn.queue,
        version=turn.version,
        forget_until=turn.version - REMEMBERED_TURNS,
        fact_shelf=[shelf for shelf, _, _ in kept],
        fact_key=[key for _, key, _ in kept],
        fact_body=[body for _, _, body in kept],
        gone_shelf=[shelf for shelf, _ in gone],
        gone_key=[key for _, key in gone],
        **columns(StayRow, stays.values(), "stay_"),
        **columns(RunRow, runs.values(), "run_"),
        **columns(EntryRow, entries, "entry_"),
    )
    if not taken:
        raise Outrun(f"Version {turn.version} of queue {turn.queue} does not follow the one that is stored.")


def columns(kind: type[Struct], parts: Iterable[Struct], prefix: str = "") -> dict[str, Sequence[Value]]:
    """Field by field what all of them hold, as one statement takes many rows at once."""
    told = tuple(parts)
    return {f"{prefix}{field}": [getattr(part, field) for part in told] for field in kind.__struct_fields__}


async def create_queue(connection: Connection, queue: CreateQueue) -> None:
    repo, branch = queue.key.repo, queue.key.branch
    if not await value(connection, "create_queue", **asdict(repo), id=queue.id, branch=branch, at=queue.at):
        raise Taken(f"There is a queue for {queue.key} already.")


async def delete_queue(connection: Connection, queue: DeleteQueue) -> None:
    if not await value(connection, "delete_queue", **asdict(queue)):
        raise Outrun(f"Queue {queue.id} is there no more, or not at version {queue.version}.")


async def prove_duty(connection: Connection, duty: ProveDuty) -> None:
    if not await value(connection, "prove_duty", **asdict(duty.repo), replica=duty.replica, fence=duty.fence):
        raise Relieved(f"{duty.replica} does not work for {duty.repo} under fence {duty.fence} any more.")


async def keep_status(connection: Connection, kept: KeepStatus) -> None:
    row = {**asdict(kept.repo), "sha": kept.sha, **asdict(kept.status), "token": kept.token}
    await rows(connection, "keep_status", **row)
    if kept.token is not None:
        await rows(connection, "drop_oldest_unclaimed", token=kept.token, kept=MAX_UNCLAIMED_STATUSES)


async def delete_expired(connection: Connection, expired: DeleteExpired) -> None:
    match expired.kind:
        case RecordKind.SUBMISSIONS:
            await rows(connection, "delete_stays", **keyed(expired, "queue", "ticket"))
        case RecordKind.RUNS:
            await rows(connection, "delete_runs", **keyed(expired, "queue", "id"))
        case RecordKind.JOURNAL:
            await rows(connection, "delete_entries", **keyed(expired, "seq"))
        case RecordKind.TARGETS:
            await rows(connection, "delete_targets", **keyed(expired, "queue", "number", "head"), before=expired.before)
        case RecordKind.STATUSES:
            statuses = keyed(expired, "host", "owner", "name", "sha", "context")
            await rows(connection, "delete_statuses", **statuses, before=expired.before)


def keyed(expired: DeleteExpired, *names: str) -> dict[str, list[str | int]]:
    """Column by column, as one statement takes many rows at once."""
    return {name: [key[place] for key in expired.keys] for place, name in enumerate(names)}


async def keep_answer(connection: Connection, kept: KeepAnswer) -> None:
    if not await value(connection, "keep_answer", **asdict(kept.answer), unless_since=kept.unless_since):
        raise Answered(f"Request {kept.answer.key} of token {kept.answer.token} was answered already.")


async def save_token(connection: Connection, token: Token) -> None:
    scopes = msgspec.json.encode(sorted(token.scopes)).decode()
    repos = msgspec.json.encode(sorted(token.repos, key=Repo.__str__)).decode()
    await rows(connection, "save_token", **{**asdict(token), "scopes": scopes, "repos": repos})


async def save_session(connection: Connection, session: Session) -> None:
    groups = msgspec.json.encode(sorted(session.groups)).decode()
    await rows(connection, "save_session", **{**asdict(session), "groups": groups})


async def save_webhook(connection: Connection, webhook: WebhookRow) -> None:
    if webhook.version == 1:
        saved = await value(connection, "add_webhook", **asdict(webhook))
    else:
        saved = await value(connection, "change_webhook", **asdict(webhook))
    if not saved:
        raise Outrun(f"Version {webhook.version} of webhook {webhook.id} does not follow the one that is stored.")
