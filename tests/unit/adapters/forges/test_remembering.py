"""Answers are remembered by their addresses, and those forgotten first that nobody asked for."""

from mergeyard.adapters.forges.remembering import BYTES_BESIDE, Remembered, Remembering

ROOM_FOR_TWO = 2 * (BYTES_BESIDE + len("/a") + len(b"1234"))


def an_answer(body: bytes = b"1234", tag: str = '"a"') -> Remembered:
    return Remembered(tag, "", body)


def test_what_was_kept_is_there_and_nothing_else():
    remembering = Remembering()
    remembering.keep("/a", an_answer())
    assert remembering.get("/a") == an_answer()
    assert remembering.get("/b") is None


def test_a_newer_answer_takes_the_place_of_the_older():
    remembering = Remembering(most_bytes=ROOM_FOR_TWO)
    for tag in ("1", "2", "3"):
        remembering.keep("/a", an_answer(tag=tag))
    remembering.keep("/b", an_answer())
    assert remembering.get("/a") == an_answer(tag="3")
    assert remembering.get("/b")


def test_the_one_not_asked_for_the_longest_goes_first():
    remembering = Remembering(most_bytes=ROOM_FOR_TWO)
    remembering.keep("/a", an_answer())
    remembering.keep("/b", an_answer())
    assert remembering.get("/a")
    remembering.keep("/c", an_answer())
    assert [remembering.get(address) is not None for address in ("/a", "/b", "/c")] == [True, False, True]


def test_an_answer_that_is_larger_than_all_there_is_room_for_is_not_kept():
    remembering = Remembering(most_bytes=ROOM_FOR_TWO)
    remembering.keep("/a", an_answer())
    remembering.keep("/b", an_answer(b"x" * ROOM_FOR_TWO))
    assert remembering.get("/b") is None
    remembering.keep("/c", an_answer())
    assert remembering.get("/c")
