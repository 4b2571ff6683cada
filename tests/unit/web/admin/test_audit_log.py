"""The audit log page: CSV export without spreadsheet formulas, filters, and lines."""

import csv
from io import StringIO
from pathlib import Path
from typing import get_args

import pytest

from mergeyard.adapters.git_cli.mirrors import GitCli
from mergeyard.domain.ids import PullRequestNumber, QueueKey, Repo, SubmissionId
from mergeyard.domain.journal import (
    SYSTEM_ACTOR,
    AdminEntry,
    JournalEntry,
    PullRequestChanged,
    QueueChanged,
    QueueCreated,
    SignedIn,
    TokenCreated,
)
from mergeyard.domain.states import PullRequestState, QueueState, Reason
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.git import Identity
from mergeyard.ports.store import AuditQuery
from mergeyard.service.audit_log import AuditLogEntry
from mergeyard.service.errors import RequestRefused
from mergeyard.service.repositories import Repositories
from mergeyard.web.admin.audit_log import (
    ENTRY_LABELS,
    AuditFilter,
    AuditLine,
    AuditRow,
    encode_csv_header,
    encode_csv_rows,
    escape_formula,
    to_audit_line,
    to_audit_row,
)


def a_row(actor: str) -> AuditRow:
    return AuditRow(
        seq=7, time="2026-11-15T00:00:00Z", actor=actor, token=None, kind="PullRequestChanged", pull_request=5
    )


@pytest.mark.parametrize("formula", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1"])  # noqa: RUF001
def test_a_formula_becomes_text(formula: str):
    assert escape_formula(formula) == f"'{formula}"


@pytest.mark.parametrize("value", ["", "ada", "1-1", "a=b", 5, -5, None])
def test_other_values_are_unchanged(value: object):
    assert escape_formula(value) is value


@pytest.mark.parametrize("actor", ["ada", 'a "quoted", name', "line\r\nbreak", "=cmd|' /C calc'!A0", "größe 試"])
def test_a_csv_row_is_read_back_as_written(actor: str):
    written = StringIO((encode_csv_header() + encode_csv_rows([a_row(actor)])).decode(), newline="")
    (row,) = csv.DictReader(written)
    assert (row["seq"], row["actor"].removeprefix("'"), row["pull_request"], row["from"]) == ("7", actor, "5", "")


REPOSITORIES = Repositories({}, GitCli(Path("unused"), Identity("Ada", "ada@example.org")))
DAY = 86_400_000


def query_of(before: str = "", **fields: str) -> AuditQuery:
    return AuditFilter(**fields).to_audit_query(REPOSITORIES, 50, before)


def test_an_empty_filter_selects_everything_that_users_did():
    assert query_of() == AuditQuery(take=50, without_actor=SYSTEM_ACTOR)
    assert query_of(automatic="1") == AuditQuery(take=50)
    assert query_of(actor="mergeyard") == AuditQuery(take=50, actor="mergeyard")
    assert not AuditFilter()


def test_all_filter_fields_can_be_combined():
    query = query_of(
        queue="Git.Local/acme/tools/app:release/1",
        number="12",
        actor="ada",
        kind="TokenCreated",
        since="1970-01-02",
        until="1970-01-03",
        before="99",
    )
    assert query.repos == (Repo("git.local", "acme/tools", "app"),)
    assert (query.branch, query.number, query.actor, query.kind, query.before) == (
        "release/1",
        12,
        "ada",
        "TokenCreated",
        99,
    )
    assert (query.since, query.until) == (DAY, 3 * DAY)


def test_a_host_can_have_a_port():
    query = query_of(queue="localhost:3000/acme/app")
    assert (query.repos, query.branch) == ((Repo("localhost:3000", "acme", "app"),), None)


@pytest.mark.parametrize(
    "fields",
    [
        {"queue": "app"},
        {"queue": "/acme/app"},
        {"number": "x"},
        {"number": "0"},
        {"number": "-1"},
        {"number": "\N{ARABIC-INDIC DIGIT ONE}"},
        {"number": "9" * 30},
        {"kind": "Nonsense"},
        {"since": "yesterday"},
        {"until": "2026-13-01"},
        {"before": "x"},
    ],
    ids=str,
)
def test_an_invalid_filter_is_refused_with_advice(fields: dict[str, str]):
    with pytest.raises(RequestRefused, match=r"[Ww]rite|Choose|Follow"):
        query_of(**fields)


def test_the_last_representable_day_is_accepted():
    assert query_of(until="9999-12-31").until is not None


def test_a_filter_is_kept_in_the_query_string():
    audit_filter = AuditFilter(queue="git.local/acme/app:main", actor="Ada & Bob")
    assert audit_filter.to_query_string(before="7") == "queue=git.local%2Facme%2Fapp%3Amain&actor=Ada+%26+Bob&before=7"
    assert AuditFilter.from_query({"actor": " ada ", "unknown": "x"}) == AuditFilter(actor="ada")


KEY = QueueKey(Repo("git.local", "acme", "app"), "main")
AT = Instant(1_700_000_000_000)
ADA = "ada#t1"


def line(record: JournalEntry, key: QueueKey | None = KEY) -> AuditLine:
    return to_audit_line(AuditLogEntry(7, key, "t1", record))


def row(record: JournalEntry, key: QueueKey | None = KEY) -> AuditRow:
    return to_audit_row(AuditLogEntry(7, key, "t1", record))


def a_change(
    source: PullRequestState | None, to: PullRequestState, reason: Reason, detail: str = ""
) -> PullRequestChanged:
    return PullRequestChanged(
        at=AT,
        submission_id=SubmissionId(1),
        number=PullRequestNumber(5),
        source=source,
        to=to,
        reason=reason,
        actor=ADA,
        detail=detail,
    )


def test_every_kind_of_entry_has_a_label():
    assert set(ENTRY_LABELS) == {kind.__name__ for kind in get_args(JournalEntry)}


def test_an_entry_about_a_pull_request_has_number_states_and_reason():
    entry = line(a_change(PullRequestState.PENDING, PullRequestState.CANCELLED, Reason.CANCELLED_BY_USER))
    assert (entry.actor, entry.number, entry.change) == ("ada", 5, "Queued → Removed")
    assert entry.details == "ada removed the pull request from the queue."
    assert line(a_change(None, PullRequestState.NOT_READY, Reason.SUBMITTED)).change == "Submitted"


def test_an_entry_about_a_queue_has_its_states_or_that_settings_changed():
    paused = QueueChanged(at=AT, source=QueueState.RUNNING, to=QueueState.PAUSED, reason=Reason.STATE_REQUESTED)
    assert line(paused).change == "Running → Paused"
    changed = QueueChanged(at=AT, source=QueueState.RUNNING, to=QueueState.RUNNING, reason=Reason.SETTINGS_CHANGED)
    assert line(changed).change == "settings"
    assert line(QueueCreated(at=AT, actor=ADA)).kind == "Queue created"


def test_an_admin_action_has_its_subject():
    entry = line(TokenCreated(at=AT, actor="operator", id="t2", name="ci", detail="read"), None)
    assert (entry.audited.key, entry.subject, entry.details, entry.actor) == (None, "ci", "read", "operator")


def test_a_sign_in_does_not_repeat_the_user_as_subject():
    assert line(SignedIn(at=AT, actor=ADA, id="t1", name="ada"), None).subject == ""


def test_a_csv_row_has_codes_instead_of_messages():
    entry = row(a_change(PullRequestState.PENDING, PullRequestState.FAILED, Reason.TEST_RUN_FAILED, "unit failed"))
    assert entry == AuditRow(
        seq=7,
        time="2023-11-14T22:13:20Z",
        actor="ada",
        token="t1",
        kind="PullRequestChanged",
        repository="git.local/acme/app",
        branch="main",
        pull_request=5,
        source="pending",
        to="failed",
        reason="test_run_failed",
        details="unit failed",
    )


@pytest.mark.parametrize("kind", get_args(AdminEntry), ids=lambda kind: kind.__name__)
def test_every_admin_action_has_a_csv_row(kind: type[TokenCreated]):
    entry = row(kind(at=AT, actor=ADA, id="x1", name="it", detail="so"), None)
    assert (entry.kind, entry.repository, entry.subject_id, entry.subject) == (kind.__name__, None, "x1", "it")
    assert entry.details == "so"
