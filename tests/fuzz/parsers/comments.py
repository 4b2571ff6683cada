"""What people write on pull requests: a command, something that is not understood, or nothing for us."""

import re

from hypothesis import strategies as st

from mergeyard.domain.priorities import LOWEST
from mergeyard.service.talking import words as answers
from mergeyard.service.talking.commands import Command, Misunderstood, Verb, read
from tests.fuzz.bending import words
from tests.fuzz.laws import holds_for

known = st.sampled_from(
    ["/merge", "!merge", "cancel", "restart", "status", "--priority", "--priority=", "--priority=high", "--no-batch",
     "--force", "urgent", "low", "0", "255", "256", "٣", "a" * 40, "0" * 64, "\n", "\u2028", "\t"]
)  # fmt: skip
comments = st.lists(known | words, max_size=8).map(" ".join) | words


@holds_for(comments)
def a_comment_is_a_command_or_misunderstood_or_nothing(text: str) -> None:
    match read(text):
        case Command() as command:
            assert command.priority is None or 0 <= command.priority <= LOWEST
            assert command.verb is Verb.SUBMIT or command == Command(verb=command.verb)
        case Misunderstood(word=word):
            assert word
            assert word in text or word == "--priority"
        case None:
            assert not text.strip().startswith(("/merge ", "!merge "))


@holds_for(comments)
def what_is_quoted_mentions_nobody_and_changes_nothing(text: str) -> None:
    said = answers.quoted(text)
    assert "\n" not in said
    assert not re.search(r"@\w", said)
    assert not re.search(r"(?<!\\)[`*\[\]<>|]", said.replace("\\\\", ""))
    assert answers.code(text).count("`") == 2
