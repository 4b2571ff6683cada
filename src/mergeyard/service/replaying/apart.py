"""Replays in a process of its own: it may take all of a core for a minute, and no queue waits for it."""

import asyncio
import sys
from asyncio.subprocess import PIPE
from contextlib import suppress

from msgspec import json

from mergeyard.service.errors import Code, Refused
from mergeyard.sim.replaying.whatif import Answer, Question, answer

ROOM = "mergeyard.sim.replaying"
SECONDS = 300


async def answered_apart(question: Question, seconds: float = SECONDS) -> Answer:
    if not question.history.arrivals:
        return answer(question)  # there is nothing to replay
    asked = await asyncio.to_thread(json.encode, question)
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", ROOM, stdin=PIPE, stdout=PIPE, stderr=PIPE)
    try:
        async with asyncio.timeout(seconds):
            said, complaint = await process.communicate(asked)
    except TimeoutError:
        words = f"To replay this takes longer than {seconds:g} seconds: choose a shorter period."
        raise Refused(Code.INVALID_REQUEST, words) from None
    finally:
        await _end(process)
    if process.returncode:
        raise RuntimeError(f"the replay broke off: {complaint.decode(errors='replace')[-2000:]}")
    return json.decode(said, type=Answer)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Also when whoever asked has gone."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
