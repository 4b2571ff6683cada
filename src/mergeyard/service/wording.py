"""Every word that we write into commits. What people wrote is quoted so that no machine obeys it."""

import re

from mergeyard.domain.ids import PrNumber, RunId, Sha

RUN = "Mergeyard-Run"
PULL_REQUEST = "Mergeyard-Pull-Request"
HEAD = "Mergeyard-Head"
LONGEST_TITLE = 200
GROUND = "Only for a merge: it is never pushed"

_ORDERS = re.compile(
    r"\[\s*(skip[ -]\w+|\w+[ -]skip|no[ -]ci)\s*\]|\*{3,}NO_CI\*{3,}|skip-checks\s*:\s*true", re.IGNORECASE
)
_HARMLESS = str.maketrans({"[": "(", "]": ")", "*": None, "-": " "})
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")
_TRAILER = re.compile(rf"^{PULL_REQUEST}: ([1-9][0-9]{{0,9}})$", re.MULTILINE)
_HEAD_TRAILER = re.compile(rf"^{HEAD}: ([0-9a-f]{{40}})$", re.MULTILINE)
_RUN_TRAILER = re.compile(rf"^{RUN}: ([0-9a-f-]{{36}})$", re.MULTILINE)


def harmless(text: str) -> str:
    """One line, without the marks by which a CI is told not to run."""
    return _obeyed_by_nobody(" ".join(_CONTROL.sub(" ", text).split()))


def merge_message(number: PrNumber, title: str, run: RunId) -> str:
    return _with_trailers(f"Merge pull request #{number}: {_subject(title)}", number, run)


def squash_message(number: PrNumber, title: str, run: RunId, head: Sha) -> str:
    return _with_head(_with_trailers(f"{_subject(title)} (#{number})", number, run), head)


def rebase_message(number: PrNumber, message: str, run: RunId, head: Sha) -> str:
    lines = (_obeyed_by_nobody(line.rstrip()) for line in message.strip().splitlines())
    kept = [line for line in lines if not line.startswith(tuple(f"{name}:" for name in (RUN, PULL_REQUEST, HEAD)))]
    return _with_head(_with_trailers("\n".join(kept).strip() or "(no message)", number, run), head)


def direct_message(number: PrNumber, title: str) -> str:
    return f"Merge pull request #{number}: {_subject(title)}\n\n{PULL_REQUEST}: {number}\n"


def bare_message(run: RunId) -> str:
    return f"Test the target branch itself\n\n{RUN}: {run}\n"


def pull_request_of(message: str) -> PrNumber | None:
    """Whose commit this is, by the trailer that we wrote last."""
    found = _TRAILER.findall(message)
    return PrNumber(int(found[-1])) if found else None


def head_of(message: str) -> Sha | None:
    """Which head it came from, where it does not hold that."""
    found = _HEAD_TRAILER.findall(message)
    return Sha(found[-1]) if found else None


def run_of(message: str) -> RunId | None:
    """In which run it was made, by the trailer that we wrote last."""
    found = _RUN_TRAILER.findall(message)
    return RunId(found[-1]) if found else None


def is_of(message: str, number: PrNumber, run: RunId | None) -> bool:
    """Whether it ends as we end the messages of this pull request in this run."""
    return run is not None and _with_trailers("", number, run).strip() in message


def _obeyed_by_nobody(line: str) -> str:
    words = _CONTROL.sub(" ", line)
    return _ORDERS.sub(lambda order: order[0].translate(_HARMLESS), words)


def _subject(title: str) -> str:
    words = harmless(title)[:LONGEST_TITLE]
    return words or "(no title)"


def _with_head(message: str, head: Sha) -> str:
    return f"{message}{HEAD}: {head}\n"


def _with_trailers(message: str, number: PrNumber, run: RunId) -> str:
    return f"{message}\n\n{PULL_REQUEST}: {number}\n{RUN}: {run}\n"
