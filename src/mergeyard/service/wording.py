"""Every word that we write into commits. What people wrote is quoted so that no machine obeys it."""

import re

from mergeyard.domain.ids import PrNumber, RunId, Sha

RUN = "Mergeyard-Run"
PULL_REQUEST = "Mergeyard-Pull-Request"
HEAD = "Mergeyard-Head"
LONGEST_TITLE = 200
MAX_TITLE_INPUT_CHARS = 1_000
"""Of a title or path as a stranger wrote it, before any expression runs on it."""
MAX_LINE_CHARS = 2_000
MAX_MESSAGE_CHARS = 64 * 1024
"""Of the message that a rebased commit keeps; what is longer is cut and ends with an ellipsis."""
GROUND = "Only for a merge: it is never pushed"

# Every expression here runs on text of strangers, on the event loop: each must take linear time.
_BRACKETED = re.compile(r"\[([^\[\]()]*)\]")
_SEPARATORS = re.compile(r"[\W_]+")
_SKIP_WORDS = re.compile(r"(?<=\*{3})no_ci(?=\*{3})|skip-checks(?=\s*:)|(?<=--)(?:skip-ci|ci-skip)", re.IGNORECASE)
_WITHOUT_JOINS = str.maketrans({"_": " ", "-": " "})
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")
_TRAILER = re.compile(rf"^{PULL_REQUEST}: ([1-9][0-9]{{0,9}})$", re.MULTILINE)
_HEAD_TRAILER = re.compile(rf"^{HEAD}: ([0-9a-f]{{40}})$", re.MULTILINE)
_RUN_TRAILER = re.compile(rf"^{RUN}: ([0-9a-f-]{{36}})$", re.MULTILINE)


def harmless(text: str) -> str:
    """One line, without the marks by which a CI is told not to run."""
    return _neutralize(" ".join(_CONTROL.sub(" ", text[:MAX_TITLE_INPUT_CHARS]).split()))


def merge_message(number: PrNumber, title: str, run: RunId) -> str:
    return _with_trailers(f"Merge pull request #{number}: {_subject(title)}", number, run)


def squash_message(number: PrNumber, title: str, run: RunId, head: Sha) -> str:
    return _with_head(_with_trailers(f"{_subject(title)} (#{number})", number, run), head)


def rebase_message(number: PrNumber, message: str, run: RunId, head: Sha) -> str:
    lines = (_CONTROL.sub(" ", _cut(line, MAX_LINE_CHARS)).rstrip() for line in _bounded(message).splitlines())
    kept = [line for line in lines if not line.startswith(tuple(f"{name}:" for name in (RUN, PULL_REQUEST, HEAD)))]
    text = _neutralize("\n".join(kept).strip())
    return _with_head(_with_trailers(text or "(no message)", number, run), head)


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


def _neutralize(text: str) -> str:
    """Breaks every command to skip CI that a known CI obeys, so that no part of the result can form one again.

    `[skip ci]`, `[ci_skip]`, `[skip azurepipelines]` and `[no ci]` lose their brackets; `***NO_CI***`, `skip-checks:`
    and `--skip-ci` lose the characters that join their words.
    """
    text = _BRACKETED.sub(lambda found: f"({found[1]})" if _is_skip_command(found[1]) else found[0], text)
    return _SKIP_WORDS.sub(lambda found: found[0].translate(_WITHOUT_JOINS), text)


def _is_skip_command(bracketed: str) -> bool:
    """Case folding, because GitLab's expression also takes the long s and the Kelvin sign for s and k."""
    words = _SEPARATORS.sub("", bracketed.casefold())
    return words.startswith("skip") or words.endswith("skip") or words == "noci"


def _bounded(message: str) -> str:
    return _cut(message[: 2 * MAX_MESSAGE_CHARS].strip(), MAX_MESSAGE_CHARS)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _subject(title: str) -> str:
    words = harmless(title)[:LONGEST_TITLE]
    return words or "(no title)"


def _with_head(message: str, head: Sha) -> str:
    return f"{message}{HEAD}: {head}\n"


def _with_trailers(message: str, number: PrNumber, run: RunId) -> str:
    return f"{message}\n\n{PULL_REQUEST}: {number}\n{RUN}: {run}\n"
