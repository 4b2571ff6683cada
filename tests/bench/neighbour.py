"""Runs what we are measured against in a process of its own, under the same uvicorn as ours."""

import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module

import uvicorn


@contextmanager
def neighbour(module: str, *arguments: str) -> Generator[int]:
    """The port at which the `application` of this module answers."""
    command = [sys.executable, "-m", __name__, module, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout
        try:
            yield int(process.stdout.readline())
        finally:
            process.terminate()


def serve(module: str, *arguments: str) -> None:
    application = import_module(module).application(*arguments)
    config = uvicorn.Config(application, http="httptools", loop="uvloop", log_config=None, access_log=False)
    listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
    print(listener.getsockname()[1], flush=True)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    serve(*sys.argv[1:])
