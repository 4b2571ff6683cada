"""Deletes records that are old, and statuses of a token that reported too many."""

from collections.abc import Iterator

from mergeyard.domain.ids import PullRequestNumber, QueueId, Repo, RunId, Sha, SubmissionId
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.store import MAX_UNCLAIMED_STATUSES
from mergeyard.ports.writes import DeleteExpired, RecordKey, RecordKind, SaveStatus
from tests.simulation.store.records import Records

Dated = Iterator[tuple[Instant, RecordKey]]


def save_status(records: Records, saved: SaveStatus) -> None:
    key = (saved.repo, saved.sha, saved.status.context)
    records.statuses.setdefault(key[:2], {})[saved.status.context] = saved.status
    records.unclaimed.pop(key, None)
    if saved.token is None or is_tested_commit(records, saved.sha):
        return
    records.unclaimed[key] = saved.token
    of_token = [key for key, token in records.unclaimed.items() if token == saved.token]
    if len(of_token) > MAX_UNCLAIMED_STATUSES:
        of_token.sort(key=lambda key: records.statuses[key[:2]][key[2]].at, reverse=True)
        for key in of_token[MAX_UNCLAIMED_STATUSES:]:
            delete_status(records, *key)


def is_tested_commit(records: Records, sha: Sha) -> bool:
    return any(queue.runs.has_tip(sha) for queue in records.queues.values())


def delete_status(records: Records, repo: Repo, sha: Sha, context: str) -> None:
    records.unclaimed.pop((repo, sha, context), None)
    records.statuses[repo, sha].pop(context, None)


def expired(records: Records, kind: RecordKind, before: Instant) -> tuple[RecordKey, ...]:
    match kind:
        case RecordKind.SUBMISSIONS:
            found = (
                (at, (queue, submission_id))
                for queue, each in records.queues.items()
                for at, submission_id in each.submissions.ended(before)
            )
        case RecordKind.RUNS:
            found = (
                (at, (queue, run)) for queue, each in records.queues.items() for at, run in each.runs.ended(before)
            )
        case RecordKind.JOURNAL:
            found = expired_entries(records, before)
        case RecordKind.IMPACTED_TARGETS:
            found = expired_impacted_targets(records, before)
        case RecordKind.STATUSES:
            found = expired_statuses(records, before)
    return tuple(key for _, key in sorted(found))


def expired_entries(records: Records, before: Instant) -> Dated:
    for seq, entry in records.journal.entries_before(before):
        queue = None if entry.queue is None else records.queues[entry.queue]
        about_the_queue = entry.kind in ("QueueCreated", "QueueChanged")
        if queue is None or (
            records.consumers.has_all_read(queue.id, seq)
            and not queue.submissions.is_live(entry.submission_id)
            and (queue.deleted or not about_the_queue)
        ):
            yield entry.at, (seq,)


def expired_impacted_targets(records: Records, before: Instant) -> Dated:
    for queue in records.queues.values():
        for saved in queue.impacted_targets.values():
            is_last = (saved.number, saved.head) == max(queue.impacted_targets)
            if saved.at < before and not is_last and not queue.submissions.has_live(saved.number):
                yield saved.at, (queue.id, saved.number, saved.head)


def expired_statuses(records: Records, before: Instant) -> Dated:
    for repo, sha, context in records.unclaimed:
        at = records.statuses[repo, sha][context].at
        if at < before:
            yield at, (repo.host, repo.owner, repo.name, sha, context)


def delete_expired(records: Records, expired: DeleteExpired) -> None:
    for key in expired.keys:
        match expired.kind, key:
            case RecordKind.SUBMISSIONS, (str(queue), int(submission_id)):
                records.queues[QueueId(queue)].delete_submission(SubmissionId(submission_id))
            case RecordKind.RUNS, (str(queue), str(run)):
                record = records.queues[QueueId(queue)]
                tip = record.delete_run(RunId(run)) or Sha("")
                for context in tuple(records.statuses.get((record.key.repo, tip), ())):
                    delete_status(records, record.key.repo, tip, context)
            case RecordKind.JOURNAL, (int(seq),):
                records.journal.delete(seq)
            case RecordKind.IMPACTED_TARGETS, (str(queue), int(number), str(head)):
                pr_head = (PullRequestNumber(number), Sha(head))
                if records.queues[QueueId(queue)].impacted_targets[pr_head].at < expired.before:
                    del records.queues[QueueId(queue)].impacted_targets[pr_head]
            case RecordKind.STATUSES, (str(host), str(owner), str(name), str(sha), str(context)):
                repo = Repo(host, owner, name)
                if is_tested_commit(records, Sha(sha)):
                    records.unclaimed.pop((repo, Sha(sha), context), None)
                elif records.statuses[repo, Sha(sha)][context].at < expired.before:
                    delete_status(records, repo, Sha(sha), context)
            case _:
                raise AssertionError(f"{key} is not a key of {expired.kind}")
