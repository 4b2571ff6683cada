"""Memory freed by threads is returned to the system. It is measured per process, so each case starts a new one."""

import ctypes
import subprocess
import sys

import pytest

THREADS = 8
MIB = 1 << 20

ALLOCATE_IN_THREADS = f"""
from concurrent.futures import ThreadPoolExecutor
from mmap import PAGESIZE
from pathlib import Path
from threading import Barrier
from mergeyard.cli.server import fix_mmap_threshold

{{setup}}
barrier = Barrier({THREADS})

def allocate(_):
    for _ in range(3):
        barrier.wait()
        _ = b"x" * {4 * MIB}

def memory():
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGESIZE

before = memory()
with ThreadPoolExecutor({THREADS}) as threads:
    list(threads.map(allocate, range({THREADS})))
    print(memory() - before)
"""


@pytest.mark.long
@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="only glibc keeps freed memory")
def test_memory_freed_by_threads_is_returned_to_the_system():
    assert memory_kept_after("fix_mmap_threshold()") < 2 * MIB
    assert memory_kept_after("") > 2 * MIB * THREADS


def memory_kept_after(setup: str) -> int:
    program = ALLOCATE_IN_THREADS.format(setup=setup)
    return int(subprocess.run([sys.executable, "-c", program], check=True, capture_output=True).stdout)
