"""Gives back what was freed.

Glibc learns from every large block that is freed to keep the next one of its size, and keeps it for each thread anew:
where a dozen threads now and then read the list of all refs, it keeps a dozen of them.
"""

import ctypes

M_MMAP_THRESHOLD = -3
LARGE = 128 * 1024
"""Bytes, from which on a block is asked of the system, and given back to it. It is what glibc begins with; once named,
it stays."""


def give_large_blocks_back() -> None:
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:  # others than glibc have ways of their own
        mallopt(M_MMAP_THRESHOLD, LARGE)
