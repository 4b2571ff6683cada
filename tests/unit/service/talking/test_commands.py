"""What somebody can ask for in a comment."""

import pytest

from mergeyard.service.talking.commands import Command, Misunderstood, Verb, read


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
    ],
)
def test_a_command_is_read(text: str, command: Command):
    assert read(text) == command


@pytest.mark.parametrize("text", ["", "please /merge", "/merged", "> /merge", "LGTM\n/merge", "`/merge`", "/ merge"])
def test_what_is_no_command_is_nothing(text: str):
    assert read(text) is None


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("/merge now", "now"),
        ("/merge submit", "submit"),
        ("/merge --priority", "--priority"),
        ("/merge --priority soon", "soon"),
        ("/merge --priority 256", "256"),
        ("/merge --priority ٣", "٣"),
        ("/merge --prio high", "--prio"),
        ("/merge cancel --force", "--force"),
    ],
)
def test_what_is_not_known_is_named(text: str, word: str):
    assert read(text) == Misunderstood(word)
