"""What is deleted because it is old, or because a token reported too much."""

from collections.abc import Iterator

from mergeyard.domain.ids import PrNumber, QueueId, RunId, Sha, Ticket
from mergeyard.domain.instants import Instant
from mergeyard.domain.repositories import Repo
from mergeyard.ports.store import MAX_UNCLAIMED_STATUSES
from mergeyard.ports.writes import DeleteExpired, KeepStatus, RecordKey, RecordKind
from tests.simulation.store.records import Records

Dated = Iterator[tuple[Instant, RecordKey]]


def keep_status(records: Records, kept: KeepStatus) -> None:
    key = (kept.repo, kept.sha, kept.status.context)
    records.statuses.setdefault(key[:2], {})[kept.status.context] = kept.status
    records.unclaimed.pop(key, None)
    if kept.token is None or is_tested(records, kept.sha):
        return
    records.unclaimed[key] = kept.token
    of_token = [key for key, token in records.unclaimed.items() if token == kept.token]
    if len(of_token) > MAX_UNCLAIMED_STATUSES:
        of_token.sort(key=lambda key: records.statuses[key[:2]][key[2]].at, reverse=True)
        for key in of_token[MAX_UNCLAIMED_STATUSES:]:
            drop_status(records, *key)


def is_tested(records: Records, sha: Sha) -> bool:
    return any(queue.runs.tests(sha) for queue in records.queues.values())


def drop_status(records: Records, repo: Repo, sha: Sha, context: str) -> None:
    records.unclaimed.pop((repo, sha, context), None)
    records.statuses[repo, sha].pop(context, None)


def expired(records: Records, kind: RecordKind, before: Instant) -> tuple[RecordKey, ...]:
    match kind:
        case RecordKind.SUBMISSIONS:
            found = (
                (at, (queue, ticket))
                for queue, each in records.queues.items()
                for at, ticket in each.stays.ended(before)
            )
        case RecordKind.RUNS:
            found = (
                (at, (queue, run)) for queue, each in records.queues.items() for at, run in each.runs.ended(before)
            )
        case RecordKind.JOURNAL:
            found = expired_entries(records, before)
        case RecordKind.TARGETS:
            found = expired_targets(records, before)
        case RecordKind.STATUSES:
            found = expired_statuses(records, before)
    return tuple(key for _, key in sorted(found))


def expired_entries(records: Records, before: Instant) -> Dated:
    for seq, entry in records.journal.made_before(before):
        queue = None if entry.queue is None else records.queues[entry.queue]
        about_the_queue = entry.kind in ("QueueCreated", "QueueChanged")
        if queue is None or (
            records.tellers.has_all_read(queue.id, seq)
            and not queue.stays.is_live(entry.ticket)
            and (queue.deleted or not about_the_queue)
        ):
            yield entry.at, (seq,)


def expired_targets(records: Records, before: Instant) -> Dated:
    for queue in records.queues.values():
        for kept in queue.targets.values():
            is_last = (kept.number, kept.head) == max(queue.targets)
            if kept.at < before and not is_last and not queue.stays.has_live(kept.number):
                yield kept.at, (queue.id, kept.number, kept.head)


def expired_statuses(records: Records, before: Instant) -> Dated:
    for repo, sha, context in records.unclaimed:
        at = records.statuses[repo, sha][context].at
        if at < before:
            yield at, (repo.host, repo.owner, repo.name, sha, context)


def delete_expired(records: Records, expired: DeleteExpired) -> None:
    for key in expired.keys:
        match expired.kind, key:
            case RecordKind.SUBMISSIONS, (str(queue), int(ticket)):
                records.queues[QueueId(queue)].delete_stay(Ticket(ticket))
            case RecordKind.RUNS, (str(queue), str(run)):
                record = records.queues[QueueId(queue)]
                tip = record.delete_run(RunId(run)) or Sha("")
                for context in tuple(records.statuses.get((record.key.repo, tip), ())):
                    drop_status(records, record.key.repo, tip, context)
            case RecordKind.JOURNAL, (int(seq),):
                records.journal.delete(seq)
            case RecordKind.TARGETS, (str(queue), int(number), str(head)):
                place = (PrNumber(number), Sha(head))
                if records.queues[QueueId(queue)].targets[place].at < expired.before:
                    del records.queues[QueueId(queue)].targets[place]
            case RecordKind.STATUSES, (str(host), str(owner), str(name), str(sha), str(context)):
                repo = Repo(host, owner, name)
                if is_tested(records, Sha(sha)):
                    records.unclaimed.pop((repo, Sha(sha), context), None)
                elif records.statuses[repo, Sha(sha)][context].at < expired.before:
                    drop_status(records, repo, Sha(sha), context)
            case _:
                raise AssertionError(f"{key} is no key of {expired.kind}")
