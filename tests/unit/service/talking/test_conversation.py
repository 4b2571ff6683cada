"""What was heard is heard once, whatever the order in which it is shown."""

from mergeyard.domain.instants import Instant
from mergeyard.ports.forge import Comment
from mergeyard.service.talking.conversation import Conversation


def a_comment(number: int, at: int) -> Comment:
    return Comment(id=str(number), author="ada", text="/merge", at=Instant(at))


def heard(conversation: Conversation, *comments: Comment) -> list[str]:
    new = conversation.unheard(comments)
    for comment in new:
        conversation.hear(comment)
    return [comment.id for comment in new]


def test_what_was_heard_is_not_heard_again():
    conversation = Conversation()
    assert heard(conversation, a_comment(1, 10), a_comment(2, 20)) == ["1", "2"]
    assert heard(conversation, a_comment(1, 10), a_comment(2, 20), a_comment(3, 30)) == ["3"]


def test_several_of_one_moment_are_told_apart():
    conversation = Conversation()
    assert heard(conversation, a_comment(9, 10)) == ["9"]
    assert heard(conversation, a_comment(9, 10), a_comment(10, 10)) == ["10"]
    assert heard(conversation, a_comment(9, 10), a_comment(10, 10), a_comment(11, 10)) == ["11"]


def test_they_are_heard_in_the_order_in_which_they_were_said():
    assert heard(Conversation(), a_comment(3, 20), a_comment(10, 10), a_comment(9, 10)) == ["9", "10", "3"]


def test_what_was_said_before_we_listened_is_past():
    assert heard(Conversation(heard=Instant(15)), a_comment(1, 10), a_comment(2, 15)) == ["2"]
