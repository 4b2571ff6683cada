"""Lets text hold what PostgreSQL's cannot: the character NUL.

What people and their programs write may hold it. It is stored as two others, in such a way that equal texts stay equal,
and the order of texts stays what it was.
"""

NUL, MARK = "\0", "\1"
NUL_STORED, MARK_STORED = "\1\1", "\1\2"


def stored(text: str) -> str:
    if text.isprintable():
        return text
    return text.replace(MARK, MARK_STORED).replace(NUL, NUL_STORED)


def restored(text: str) -> str:
    if text.isprintable():
        return text
    return text.replace(NUL_STORED, NUL).replace(MARK_STORED, MARK)
