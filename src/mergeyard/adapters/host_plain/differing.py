"""Finds what differs between two long lists that are mostly the same, without taking them apart."""


def differing_lines(before: bytes, now: bytes) -> tuple[list[bytes], list[bytes]]:
    """The lines from the first to the last that differ: of lists that differ in one place, only what is there."""
    begin = before.rfind(b"\n", 0, _length_of_same_beginning(before, now)) + 1
    before, now = before[begin:], now[begin:]
    same = _length_of_same_beginning(before[::-1], now[::-1])
    end = before.find(b"\n", len(before) - same)
    behind = 0 if end < 0 else len(before) - end
    return before[: len(before) - behind].split(b"\n"), now[: len(now) - behind].split(b"\n")


def _length_of_same_beginning(one: bytes, other: bytes) -> int:
    same, most = 0, min(len(one), len(other))
    while same < most:
        middle = (same + most + 1) // 2
        if one[same:middle] == other[same:middle]:
            same = middle
        else:
            most = middle - 1
    return same
