"""Commits: all that one caller wants written, or nothing of it."""

from collections.abc import Sequence
from typing import assert_never

from mergeyard.domain.instants import Instant
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
    RecordTokenUse,
    SaveSession,
    SaveToken,
    SaveTurn,
    SaveWebhook,
    TakeHeart,
    Write,
)
from tests.simulation.store.expiry import delete_expired, keep_status
from tests.simulation.store.records import Records
from tests.simulation.store.refusing import Foresight


def commit(records: Records, writes: Sequence[Write], now: Instant) -> None:
    """What could be refused is looked at before anything is written."""
    foresight = Foresight(records, now)
    for write in writes:
        foresight.look_at(write)
    for write in writes:
        write_down(records, write)


def write_down(records: Records, write: Write) -> None:
    match write:
        case ProveDuty():
            pass
        case SaveTurn():
            records.queues[write.queue].take_turn(write)
        case AppendEntries():
            for entry in write.entries:
                records.journal.append(entry)
        case CreateQueue():
            records.create_queue(write)
        case DeleteQueue():
            records.delete_queue(write.id)
        case KeepTargets():
            records.queues[write.queue].keep_targets(write)
        case KeepStatus():
            keep_status(records, write)
        case DeleteExpired():
            delete_expired(records, write)
        case KeepConversation():
            records.conversations[write.queue, write.number] = write.body
        case KeepAnswer():
            records.answers[write.answer.token, write.answer.key] = write.answer
        case ForgetAnswers():
            forget_answers(records, write.before)
        case SaveToken():
            records.people.save_token(write.token)
        case RecordTokenUse():
            records.people.record_use(write)
        case SaveSession() | DropSession() | DropVouchedFor() | ForgetSessions():
            write_sessions(records, write)
        case BeginTelling() | MoveCursor() | NoteStuck() | TakeHeart() | ForgetTeller():
            write_telling(records, write)
        case SaveWebhook():
            records.webhooks.save(write.webhook)
        case DropWebhook():
            records.webhooks.drop(write.id)
        case KeepDelivery():
            records.webhooks.keep(write)
        case _:
            assert_never(write)


def forget_answers(records: Records, before: Instant) -> None:
    records.answers = {place: answer for place, answer in records.answers.items() if answer.at >= before}


def write_sessions(records: Records, write: SaveSession | DropSession | DropVouchedFor | ForgetSessions) -> None:
    match write:
        case SaveSession():
            records.people.save_session(write.session)
        case DropSession():
            records.people.drop_session(write.digest)
        case DropVouchedFor():
            records.people.keep_sessions(lambda session: session.token is not None)
        case ForgetSessions():
            records.people.keep_sessions(lambda session: session.expires_at > write.before)
        case _:
            assert_never(write)


def write_telling(records: Records, write: BeginTelling | MoveCursor | NoteStuck | TakeHeart | ForgetTeller) -> None:
    match write:
        case BeginTelling():
            records.tellers.begin(write.teller, ((queue, records.journal.end(queue)) for queue in records.queues))
        case MoveCursor():
            records.tellers.move(write.teller, write.queue, write.seq)
        case NoteStuck():
            records.tellers.note_stuck(write.teller, write.queue, write.at)
        case TakeHeart():
            records.tellers.take_heart(write.teller)
        case ForgetTeller():
            records.tellers.forget(write.teller)
        case _:
            assert_never(write)
