"""Parsing of commands in comments; each comment is handled once."""

from pathlib import Path

import msgspec
import pytest

from mergeyard.adapters.store_sqlite.store import SqliteStore
from mergeyard.domain.ids import QueueKey, Repo, Sha
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.forge import Comment
from mergeyard.service.comments.commands import (
    MAX_REPLY_CHARS,
    MAX_UNSENT_REPLIES,
    Command,
    CommandRequest,
    ThreadState,
    UnknownArgument,
    UnsentReply,
    Verb,
    parse_command,
)
from mergeyard.service.queue_actor import QueueActor
from tests.support.builders import a_plain_queue, a_pull_request
from tests.support.clock import ManualClock


def a_comment(number: int, at: int) -> Comment:
    return Comment(id=str(number), author="ada", text="/merge", at=Instant(at))


def handle(thread: ThreadState, *comments: Comment) -> list[str]:
    new = thread.list_unhandled(comments)
    for comment in new:
        thread.mark_handled(comment)
    return [comment.id for comment in new]


def test_a_comment_is_handled_once():
    thread = ThreadState()
    assert handle(thread, a_comment(1, 10), a_comment(2, 20)) == ["1", "2"]
    assert handle(thread, a_comment(1, 10), a_comment(2, 20), a_comment(3, 30)) == ["3"]


def test_comments_with_the_same_time_are_distinguished_by_id():
    thread = ThreadState()
    assert handle(thread, a_comment(9, 10)) == ["9"]
    assert handle(thread, a_comment(9, 10), a_comment(10, 10)) == ["10"]
    assert handle(thread, a_comment(9, 10), a_comment(10, 10), a_comment(11, 10)) == ["11"]


def test_comments_are_handled_in_the_order_in_which_they_were_written():
    assert handle(ThreadState(), a_comment(3, 20), a_comment(10, 10), a_comment(9, 10)) == ["9", "10", "3"]


def test_comments_before_the_start_of_the_thread_state_are_ignored():
    assert handle(ThreadState(handled_until=Instant(15)), a_comment(1, 10), a_comment(2, 15)) == ["2"]


def test_a_state_that_an_earlier_version_stored_has_no_unsent_replies():
    stored = b'{"handled_until":10,"handled_ids":["1"],"fingerprint":"a b"}'
    thread = msgspec.json.decode(stored, type=ThreadState)
    assert thread == ThreadState(handled_until=Instant(10), handled_ids=("1",), fingerprint="a b")
    assert thread.unsent_replies == ()


def test_unsent_replies_are_limited_in_number_and_length_and_the_latest_stay():
    thread = ThreadState()
    for number in range(MAX_UNSENT_REPLIES + 2):
        thread.add_reply(UnsentReply(text=f"{number} " + "x" * MAX_REPLY_CHARS))
    assert [reply.text.split()[0] for reply in thread.unsent_replies] == [
        str(number) for number in range(2, MAX_UNSENT_REPLIES + 2)
    ]
    assert {len(reply.text) for reply in thread.unsent_replies} == {MAX_REPLY_CHARS}


def test_a_thread_with_an_unsent_reply_is_read_again_at_the_first_poll_after_a_restart():
    thread = ThreadState(fingerprint="a b")
    thread.add_reply(UnsentReply(comment_id="1"))
    assert thread.fingerprint == ""


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("/merge", Command(verb=Verb.SUBMIT)),
        ("  /merge  \nThank you!", Command(verb=Verb.SUBMIT)),
        ("/merge --priority high", Command(verb=Verb.SUBMIT, priority=10)),
        ("/merge --priority=urgent", Command(verb=Verb.SUBMIT, priority=0)),
        ("/merge --priority 33", Command(verb=Verb.SUBMIT, priority=33)),
        ("/merge --no-batch --force", Command(verb=Verb.SUBMIT, no_batch=True, forced=True)),
        ("/merge cancel", Command(verb=Verb.CANCEL)),
        ("/merge restart", Command(verb=Verb.RESTART)),
        ("/merge status", Command(verb=Verb.STATUS)),
        ("/Merge", Command(verb=Verb.SUBMIT)),
        ("!MERGE --Priority High", Command(verb=Verb.SUBMIT, priority=10)),
        ("/merge.", Command(verb=Verb.SUBMIT)),
        ("/Merge Cancel. \nIt is too early.", Command(verb=Verb.CANCEL)),
        (f"/merge {'A' * 40}.", Command(verb=Verb.SUBMIT, head=Sha("a" * 40))),
    ],
)
def test_a_command_is_parsed(text: str, command: Command):
    assert parse_command(text) == command


@pytest.mark.parametrize(
    "text", ["", ".", "please /merge", "/merged", "/merge..", "> /merge", "LGTM\n/merge", "`/merge`", "/ merge"]
)
def test_other_comments_are_not_commands(text: str):
    assert parse_command(text) is None


@pytest.mark.parametrize("separator", ["\n", "\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029"])
def test_only_the_first_line_is_a_command_whatever_ends_it(separator: str):
    assert parse_command(f"/merge{separator}--force") == Command(verb=Verb.SUBMIT)


@pytest.mark.parametrize(
    ("text", "argument"),
    [
        ("/merge now", "now"),
        ("/Merge Now.", "Now"),
        ("/merge submit", "submit"),
        ("/merge --priority", "--priority"),
        ("/merge --priority soon", "soon"),
        ("/merge --priority 256", "256"),
        ("/merge --priority ٣", "٣"),
        ("/merge --prio high", "--prio"),
        ("/merge cancel --force", "--force"),
        ("/merge --force=no", "--force=no"),
    ],
)
def test_an_unknown_argument_is_named(text: str, argument: str):
    assert parse_command(text) == UnknownArgument(argument)


LONG_KEY = QueueKey(Repo("gitlab.local", "/".join(["group"] * 50), "app"), "main")


def test_idempotency_keys_differ_however_long_the_repository_name_is(tmp_path: Path):
    actor = QueueActor(LONG_KEY, a_plain_queue(), 0, SqliteStore(tmp_path / "mergeyard.db"), ManualClock())
    commands = [
        CommandRequest(
            queue_actor=actor, pull_request=a_pull_request(1), user="ada", key=comment_id, prefix="/merge"
        ).to_command()
        for comment_id in ("101", "102")
    ]
    keys = [command.idempotent_request.key for command in commands if command.idempotent_request]
    assert len(set(keys)) == 2
    assert all(len(key) <= 255 for key in keys)
