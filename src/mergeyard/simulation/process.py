"""The main loop of a simulation process: it reads requests and writes the responses."""

import os
import signal
import sys
from collections.abc import Callable


def serve_requests(respond: Callable[[bytes], bytes]) -> None:
    """Until the server closes the pipe. Messages in both directions are prefixed with their length in four bytes."""
    os.nice(10)  # The server's own work has priority.
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The server handles Ctrl-C and closes the pipe.
    requests, responses = sys.stdin.buffer, sys.stdout.buffer
    while len(length := requests.read(4)) == 4:
        size = int.from_bytes(length)
        request = requests.read(size)
        if len(request) < size:
            return  # The server was killed while it wrote.
        response = respond(request)
        try:
            responses.write(len(response).to_bytes(4) + response)
            responses.flush()
        except BrokenPipeError:
            os._exit(0)  # The server was killed meanwhile. A normal exit would write to the pipe again.
