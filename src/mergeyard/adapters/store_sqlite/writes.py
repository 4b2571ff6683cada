"""Puts each kind of write into statements. Whoever calls them holds a transaction."""

from typing import assert_never

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from mergeyard.adapters.store_sqlite.handles import Cursor
from mergeyard.adapters.store_sqlite.sql import SQL
from mergeyard.domain.repositories import Repo
from mergeyard.domain.sessions import Session
from mergeyard.domain.tokens import Token
from mergeyard.ports.store import (
    DELIVERIES_KEPT,
    HEADS_WITH_TARGETS,
    MAX_UNCLAIMED_STATUSES,
    Answered,
    Outrun,
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
    SaveSession,
    SaveToken,
    SaveTurn,
    SaveWebhook,
    TakeHeart,
    WebhookRow,
    Write,
)


class Beat(Struct, frozen=True):
    """Nothing but a sign that writing works."""


def perform(cursor: Cursor, write: Write | Beat) -> None:
    match write:
        case SaveTurn():
            save_turn(cursor, write)
        case AppendEntries():
            cursor.executemany(SQL["append_entry"], map(asdict, write.entries))
        case KeepAnswer():
            keep_answer(cursor, write)
        case KeepStatus():
            keep_status(cursor, write)
        case KeepTargets():
            cursor.execute(SQL["keep_targets"], asdict(write))
            cursor.execute(
                SQL["drop_older_heads"],
                {"queue": write.queue, "number": write.number, "head": write.head, "others": HEADS_WITH_TARGETS - 1},
            )
        case CreateQueue():
            create_queue(cursor, write)
        case DeleteQueue():
            delete_queue(cursor, write)
        case ForgetAnswers():
            cursor.execute(SQL["forget_answers"], asdict(write))
        case ProveDuty():
            pass  # Whoever writes to this file works for all repositories in it: there is nobody who could relieve it.
        case SaveToken():
            save_token(cursor, write.token)
        case RecordTokenUse():
            cursor.execute(SQL["record_token_use"], asdict(write))
        case SaveSession():
            save_session(cursor, write.session)
        case DropSession():
            cursor.execute(SQL["drop_session"], asdict(write))
        case DropVouchedFor():
            cursor.execute(SQL["drop_vouched_for"])
        case ForgetSessions():
            cursor.execute(SQL["forget_sessions"], asdict(write))
        case DeleteExpired():
            delete_expired(cursor, write)
        case BeginTelling():
            begin_telling(cursor, write)
        case MoveCursor():
            cursor.execute(SQL["move_cursor"], asdict(write))
        case NoteStuck():
            cursor.execute(SQL["note_stuck"], asdict(write))
        case TakeHeart():
            cursor.execute(SQL["take_heart"], asdict(write))
        case ForgetTeller():
            cursor.execute(SQL["forget_teller"], asdict(write))
            cursor.execute(SQL["drop_cursors"], asdict(write))
        case KeepConversation():
            cursor.execute(SQL["keep_conversation"], asdict(write))
        case SaveWebhook():
            save_webhook(cursor, write.webhook)
        case DropWebhook():
            cursor.execute(SQL["drop_webhook"], asdict(write))
        case KeepDelivery():
            cursor.execute(SQL["keep_delivery"], asdict(write))
            cursor.execute(SQL["forget_deliveries"], {"webhook": write.webhook, "kept": DELIVERIES_KEPT})
        case Beat():
            cursor.execute(SQL["beat"])
        case _:
            assert_never(write)


def save_turn(cursor: Cursor, turn: SaveTurn) -> None:
    queue = {"queue": turn.queue}
    cursor.execute(SQL["take_turn"], {**queue, "version": turn.version})
    if not cursor.connection.changes():
        raise Outrun(f"Version {turn.version} of queue {turn.queue} does not follow the one that is stored.")
    for fact in turn.facts:
        cursor.execute(SQL["drop_fact" if fact.body is None else "keep_fact"], {**queue, **asdict(fact)})
    for stay in turn.stays:
        row = {**queue, **asdict(stay)}
        cursor.execute(SQL["save_stay"], row)
        if not cursor.connection.changes():
            cursor.execute(SQL["move_stay"], row)
    for run in turn.runs:
        cursor.execute(SQL["save_run"], {**queue, **asdict(run)})


def create_queue(cursor: Cursor, queue: CreateQueue) -> None:
    repo, branch = queue.key.repo, queue.key.branch
    cursor.execute(SQL["create_queue"], {**asdict(repo), "id": queue.id, "branch": branch, "at": queue.at})
    if not cursor.connection.changes():
        raise Taken(f"There is a queue for {queue.key} already.")


def delete_queue(cursor: Cursor, queue: DeleteQueue) -> None:
    cursor.execute(SQL["delete_queue"], asdict(queue))
    if not cursor.connection.changes():
        raise Outrun(f"Queue {queue.id} is there no more, or not at version {queue.version}.")
    cursor.execute(SQL["drop_facts"], {"id": queue.id})
    cursor.execute(SQL["drop_targets"], {"id": queue.id})


def keep_status(cursor: Cursor, kept: KeepStatus) -> None:
    row = {**asdict(kept.repo), "sha": kept.sha, **asdict(kept.status), "token": kept.token}
    cursor.execute(SQL["keep_status"], row)
    if kept.token is not None:
        cursor.execute(SQL["drop_oldest_unclaimed"], {"token": kept.token, "kept": MAX_UNCLAIMED_STATUSES})


def delete_expired(cursor: Cursor, expired: DeleteExpired) -> None:
    match expired.kind:
        case RecordKind.SUBMISSIONS:
            cursor.executemany(SQL["delete_stay"], keyed(expired, "queue", "ticket"))
        case RecordKind.RUNS:
            runs = keyed(expired, "queue", "id")
            cursor.executemany(SQL["remember_passed_run"], runs)
            cursor.executemany(SQL["delete_statuses_of_run"], runs)
            cursor.executemany(SQL["delete_run"], runs)
        case RecordKind.JOURNAL:
            cursor.executemany(SQL["delete_entry"], keyed(expired, "seq"))
        case RecordKind.TARGETS:
            targets = [{**key, "before": expired.before} for key in keyed(expired, "queue", "number", "head")]
            cursor.executemany(SQL["delete_targets"], targets)
        case RecordKind.STATUSES:
            statuses = keyed(expired, "host", "owner", "name", "sha", "context")
            cursor.executemany(SQL["claim_status"], statuses)
            cursor.executemany(SQL["delete_status"], [{**key, "before": expired.before} for key in statuses])


def keyed(expired: DeleteExpired, *columns: str) -> list[dict[str, str | int]]:
    return [dict(zip(columns, key, strict=True)) for key in expired.keys]


def keep_answer(cursor: Cursor, kept: KeepAnswer) -> None:
    cursor.execute(SQL["keep_answer"], {**asdict(kept.answer), "unless_since": kept.unless_since})
    if not cursor.connection.changes():
        raise Answered(f"Request {kept.answer.key} of token {kept.answer.token} was answered already.")


def save_token(cursor: Cursor, token: Token) -> None:
    scopes = msgspec.json.encode(sorted(token.scopes)).decode()
    repos = msgspec.json.encode(sorted(token.repos, key=Repo.__str__)).decode()
    cursor.execute(SQL["save_token"], {**asdict(token), "scopes": scopes, "repos": repos})


def save_session(cursor: Cursor, session: Session) -> None:
    groups = msgspec.json.encode(sorted(session.groups)).decode()
    cursor.execute(SQL["save_session"], {**asdict(session), "groups": groups})


def begin_telling(cursor: Cursor, begin: BeginTelling) -> None:
    cursor.execute(SQL["begin_telling"], asdict(begin))
    if cursor.connection.changes():
        cursor.execute(SQL["leave_the_past"], asdict(begin))


def save_webhook(cursor: Cursor, webhook: WebhookRow) -> None:
    cursor.execute(SQL["add_webhook" if webhook.version == 1 else "change_webhook"], asdict(webhook))
    if not cursor.connection.changes():
        raise Outrun(f"Version {webhook.version} of webhook {webhook.id} does not follow the one that is stored.")
