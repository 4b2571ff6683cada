"""Two lists that are mostly the same are compared where they differ."""

from hypothesis import given
from hypothesis import strategies as st

from mergeyard.adapters.host_plain.differing import differing_lines

LINES = st.lists(st.sampled_from([b"a", b"ab", b"b", b"ba"]), unique=True, max_size=4)


def listed(lines: list[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def named(lines: list[bytes]) -> list[bytes]:
    return [line for line in lines if line]


@given(LINES, LINES, LINES, LINES)
def test_what_is_taken_and_put_between_the_same_lines_is_found(
    ahead: list[bytes], gone: list[bytes], come: list[bytes], behind: list[bytes]
):
    before, now = [*ahead, *gone, *behind], [*ahead, *come, *behind]
    was, became = map(named, differing_lines(listed(before), listed(now)))
    places = (at for at in range(len(before) + 1) if before[at : at + len(was)] == was)
    assert now in [[*before[:at], *became, *before[at + len(was) :]] for at in places]


def test_of_many_lines_only_those_in_between_are_named():
    many = [b"%d" % number for number in range(1000)]
    other = [*many[:500], b"one more", *many[500:600], *many[601:]]
    was, became = differing_lines(listed(many), listed(other))
    assert (len(named(was)), len(named(became))) == (101, 101)


def test_nothing_differs_where_all_is_the_same():
    assert list(map(named, differing_lines(b"a\nb\n", b"a\nb\n"))) == [[], []]
