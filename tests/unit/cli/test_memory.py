"""What threads freed is the system's again. Glibc tells only of a whole process, so each is one of its own."""

import ctypes
import subprocess
import sys

import pytest

THREADS = 8
MIB = 1 << 20

READ_LONG_LISTS = f"""
from concurrent.futures import ThreadPoolExecutor
from mmap import PAGESIZE
from pathlib import Path
from threading import Barrier
from mergeyard.cli.memory import give_large_blocks_back

{{beforehand}}
together = Barrier({THREADS})

def read_a_long_list(_):
    for _ in range(3):
        together.wait()
        _ = b"x" * {4 * MIB}

def memory():
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGESIZE

before = memory()
with ThreadPoolExecutor({THREADS}) as threads:
    list(threads.map(read_a_long_list, range({THREADS})))
    print(memory() - before)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="only glibc keeps it")
def test_what_threads_freed_is_given_back():
    assert kept_after("give_large_blocks_back()") < 2 * MIB
    assert kept_after("") > 2 * MIB * THREADS


def kept_after(beforehand: str) -> int:
    program = READ_LONG_LISTS.format(beforehand=beforehand)
    return int(subprocess.run([sys.executable, "-c", program], check=True, capture_output=True).stdout)
