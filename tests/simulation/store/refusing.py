"""What refuses a commit, found before anything is written: each write is seen behind those that come before it."""

from typing import assert_never

from mergeyard.domain.ids import QueueId
from mergeyard.domain.instants import Instant
from mergeyard.domain.repositories import QueueKey
from mergeyard.ports.store import Answered, Outrun, Relieved, Taken
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
    WebhookRow,
    Write,
)
from tests.simulation.store.records import Records


class Mistake(Exception):
    """Of whoever wrote it: it belongs to something that never was. Nothing was written."""


class Foresight:
    """What will be there when the writes that were looked at are written; None stands for what will not."""

    def __init__(self, records: Records, now: Instant) -> None:
        self._records = records
        self._now = now
        self._versions: dict[QueueId, int | None] = {}
        self._created: dict[QueueKey, QueueId] = {}
        self._answered: dict[tuple[str, str], Instant | None] = {}
        self._webhooks: dict[str, int | None] = {}
        self._tokens: set[str] = set()

    def look_at(self, write: Write) -> None:
        match write:
            case ProveDuty():
                self._prove(write)
            case SaveTurn():
                self._take_turn(write)
            case AppendEntries():
                for entry in write.entries:
                    if entry.queue is not None:
                        self._is_known(entry.queue)
            case CreateQueue():
                self._create(write)
            case DeleteQueue():
                self._delete(write)
            case KeepAnswer():
                self._keep_answer(write)
            case ForgetAnswers():
                self._forget_answers(write.before)
            case SaveToken():
                self._tokens.add(write.token.id)
            case SaveSession():
                self._sign_in(write.session.token)
            case SaveWebhook():
                self._save_webhook(write.webhook)
            case DropWebhook():
                self._webhooks[write.id] = None
            case KeepTargets() | KeepConversation() | MoveCursor() | NoteStuck():
                self._is_known(write.queue)
            case RecordTokenUse() | KeepStatus() | KeepDelivery() | DropSession() | DropVouchedFor() | ForgetSessions():
                pass
            case BeginTelling() | TakeHeart() | ForgetTeller() | DeleteExpired():
                pass
            case _:
                assert_never(write)

    # Duties and queues

    def _prove(self, proof: ProveDuty) -> None:
        if not self._records.duties.proves(proof, self._now):
            raise Relieved(f"{proof.replica} does not work for {proof.repo} under fence {proof.fence} any more.")

    def _take_turn(self, turn: SaveTurn) -> None:
        if self._version(turn.queue) != turn.version - 1:
            raise Outrun(f"Version {turn.version} of queue {turn.queue} does not follow the one that is stored.")
        self._versions[turn.queue] = turn.version

    def _create(self, queue: CreateQueue) -> None:
        holder = self._created.get(queue.key) or self._holder(queue.key)
        if holder is not None and self._version(holder) is not None:
            raise Taken(f"There is a queue for {queue.key} already.")
        if queue.id in self._versions or queue.id in self._records.queues:
            raise Mistake(f"There is or was a queue {queue.id} already.")
        self._versions[queue.id], self._created[queue.key] = 0, queue.id

    def _delete(self, queue: DeleteQueue) -> None:
        if self._version(queue.id) != queue.version:
            raise Outrun(f"Queue {queue.id} is there no more, or not at version {queue.version}.")
        self._versions[queue.id] = None

    def _version(self, queue: QueueId) -> int | None:
        if queue in self._versions:
            return self._versions[queue]
        record = self._records.queues.get(queue)
        return None if record is None or record.deleted else record.version

    def _holder(self, key: QueueKey) -> QueueId | None:
        record = self._records.live.get(key)
        return None if record is None else record.id

    def _is_known(self, queue: QueueId) -> None:
        """A deleted one is."""
        if queue not in self._records.queues and queue not in self._versions:
            raise Mistake(f"A foreign key leads nowhere: there never was a queue {queue}.")

    # All else

    def _keep_answer(self, kept: KeepAnswer) -> None:
        place = (kept.answer.token, kept.answer.key)
        stored = self._records.answers.get(place)
        at = self._answered.get(place, stored and stored.at)
        if at is not None and at >= kept.unless_since:
            raise Answered(f"Request {kept.answer.key} of token {kept.answer.token} was answered already.")
        self._answered[place] = kept.answer.at

    def _forget_answers(self, before: Instant) -> None:
        stored = {place: answer.at for place, answer in self._records.answers.items()}
        for place, at in (stored | self._answered).items():
            if at is not None and at < before:
                self._answered[place] = None

    def _sign_in(self, token: str | None) -> None:
        if token is not None and token not in self._tokens and token not in self._records.people.tokens:
            raise Mistake(f"A foreign key leads nowhere: there is no token {token}.")

    def _save_webhook(self, webhook: WebhookRow) -> None:
        stored = self._records.webhooks.rows.get(webhook.id)
        version = self._webhooks.get(webhook.id, stored and stored.version)
        if version != (None if webhook.version == 1 else webhook.version - 1):
            raise Outrun(f"Version {webhook.version} of webhook {webhook.id} does not follow the one that is stored.")
        self._webhooks[webhook.id] = webhook.version
