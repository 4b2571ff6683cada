"""Comments on pull requests: each is a command, an invalid command, or neither."""

import re

from hypothesis import strategies as st

from mergeyard.domain.config import LOWEST_PRIORITY
from mergeyard.service.comments import texts as answers
from mergeyard.service.comments.commands import Command, UnknownArgument, Verb, parse_command
from tests.fuzz.mutations import words
from tests.fuzz.properties import holds_for

known = st.sampled_from(
    ["/merge", "!merge", "cancel", "restart", "status", "--priority", "--priority=", "--priority=high", "--no-batch",
     "--force", "urgent", "low", "0", "255", "256", "٣", "a" * 40, "0" * 64, "\n", "\u2028", "\t"]
)  # fmt: skip
comments = st.lists(known | words, max_size=8).map(" ".join) | words


@holds_for(comments)
def comment_is_a_command_or_invalid_or_ignored(text: str) -> None:
    match parse_command(text):
        case Command() as command:
            assert command.priority is None or 0 <= command.priority <= LOWEST_PRIORITY
            assert command.verb is Verb.SUBMIT or command == Command(verb=command.verb)
        case UnknownArgument(argument=word):
            assert word
            assert word in text or word.lower() == "--priority"
        case None:
            assert not text.strip().startswith(("/merge ", "!merge "))


@holds_for(comments)
def quoted_text_has_no_mentions_and_no_markup(text: str) -> None:
    escaped = answers.escape_markdown(text)
    assert "\n" not in escaped
    assert not re.search(r"@\w", escaped)
    assert not re.search(r"(?<!\\)[`*\[\]<>|]", escaped.replace("\\\\", ""))
    assert answers.render_code(text).count("`") == 2
