"""Every entry of the journal has words for people, and a row for programs."""

from typing import get_args

import pytest

from mergeyard.domain.ids import PrNumber, Ticket
from mergeyard.domain.instants import Instant
from mergeyard.domain.journal import (
    Administered,
    Kept,
    PrChanged,
    QueueChanged,
    QueueCreated,
    SignedIn,
    TokenCreated,
)
from mergeyard.domain.reasons import Reason
from mergeyard.domain.repositories import QueueKey, Repo
from mergeyard.domain.states import PrState, QueueState
from mergeyard.service.auditing import Audited
from mergeyard.web.administration.audit_words import KINDS, Line, Row, line_of, row_of

KEY = QueueKey(Repo("git.local", "acme", "app"), "main")
AT = Instant(1_700_000_000_000)
ADA = "ada#t1"


def line(record: Kept, key: QueueKey | None = KEY) -> Line:
    return line_of(Audited(7, key, "t1", record))


def row(record: Kept, key: QueueKey | None = KEY) -> Row:
    return row_of(Audited(7, key, "t1", record))


def a_change(source: PrState | None, to: PrState, reason: Reason, words: str = "") -> PrChanged:
    return PrChanged(
        at=AT, ticket=Ticket(1), number=PrNumber(5), source=source, to=to, reason=reason, actor=ADA, words=words
    )


def test_every_kind_of_entry_has_a_word():
    assert set(KINDS) == {kind.__name__ for kind in get_args(Kept)}


def test_a_pull_request_is_told_with_its_number_its_states_and_the_reason():
    told = line(a_change(PrState.PENDING, PrState.CANCELLED, Reason.CANCELLED_BY_USER))
    assert (told.actor, told.number, told.change) == ("ada", 5, "waiting → cancelled")
    assert told.details == "It was taken out of the queue."
    assert line(a_change(None, PrState.NOT_READY, Reason.SUBMITTED)).change == "not ready"


def test_a_queue_is_told_with_its_states_or_that_its_settings_changed():
    paused = QueueChanged(at=AT, source=QueueState.RUNNING, to=QueueState.PAUSED, reason=Reason.STATE_REQUESTED)
    assert line(paused).change == "running → paused"
    set_ = QueueChanged(at=AT, source=QueueState.RUNNING, to=QueueState.RUNNING, reason=Reason.SETTINGS_CHANGED)
    assert line(set_).change == "settings"
    assert line(QueueCreated(at=AT, actor=ADA)).kind == "Queue created"


def test_a_deed_is_told_with_what_it_was_done_to():
    told = line(TokenCreated(at=AT, actor="operator", id="t2", name="ci", words="read"), None)
    assert (told.key, told.subject, told.details, told.actor) == (None, "ci", "read", "operator")


def test_who_signed_in_is_not_named_twice():
    assert line(SignedIn(at=AT, actor=ADA, id="t1", name="ada"), None).subject == ""


def test_a_row_has_codes_and_not_words():
    told = row(a_change(PrState.PENDING, PrState.FAILED, Reason.TEST_RUN_FAILED, "unit failed"))
    assert told == Row(
        seq=7,
        time="2023-11-14T22:13:20Z",
        actor="ada",
        token="t1",
        kind="PrChanged",
        repository="git.local/acme/app",
        branch="main",
        pull_request=5,
        source="pending",
        to="failed",
        reason="test_run_failed",
        details="unit failed",
    )


@pytest.mark.parametrize("kind", get_args(Administered), ids=lambda kind: kind.__name__)
def test_every_deed_has_a_row(kind: type[TokenCreated]):
    told = row(kind(at=AT, actor=ADA, id="x1", name="it", words="so"), None)
    assert (told.kind, told.repository, told.subject_id, told.subject) == (kind.__name__, None, "x1", "it")
    assert told.details == "so"
