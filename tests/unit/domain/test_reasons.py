"""Every reason has a sentence for people."""

import pytest

from mergeyard.domain.reasons import MESSAGES, Reason


def test_every_reason_has_a_message():
    assert set(MESSAGES) == set(Reason)


@pytest.mark.parametrize("message", MESSAGES.values())
def test_a_message_is_a_sentence(message: str):
    assert message[0].isupper()
    assert message.endswith(".")


def test_no_two_reasons_say_the_same():
    assert len(set(MESSAGES.values())) == len(MESSAGES)
