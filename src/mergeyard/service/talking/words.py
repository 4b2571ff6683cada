"""Every word that we say to people at a forge: in comments, in answers to commands and in our status.

What others wrote (names of checks, words of a host) is quoted, so that it mentions nobody and changes nothing.
"""

import re
from collections.abc import Sequence

from msgspec import Struct

from mergeyard.domain import ours
from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.instants import Instant
from mergeyard.domain.states import PrState
from mergeyard.domain.statuses import Status, StatusState
from mergeyard.service.views import PullView

OURS = "<!-- mergeyard"
"""How everything begins that we say."""
MARK = f"{OURS} -->"
SHORT = 140
"""What every forge shows of a status."""
MOST_IN_A_TITLE = 10
MOST_OF_A_BRANCH = 60

HEADLINES = {
    PrState.NOT_READY: "⏳ Not ready yet",
    PrState.PENDING: "🕒 In the queue",
    PrState.TESTING: "🧪 Being tested",
    PrState.TESTS_PASSED: "✅ Tests passed",
    PrState.PENDING_FAILURE: "🔎 Tests failed, cause not yet known",
    PrState.FAILED: "❌ Failed",
    PrState.CANCELLED: "🚫 Taken out of the queue",
    PrState.MERGED: "🎉 Merged",
}
STATES = {
    PrState.FAILED: StatusState.FAILURE,
    PrState.CANCELLED: StatusState.ERROR,
    PrState.MERGED: StatusState.SUCCESS,
}
ON_THEIR_WAY = (PrState.PENDING, PrState.TESTING, PrState.TESTS_PASSED, PrState.PENDING_FAILURE)
IN_THE_QUEUE = "In the merge queue."
USAGE = (
    "Say `!merge` to submit this pull request (`--priority urgent|high|medium|low`, `--no-batch`, `--force`), `!merge` "
    "and the full SHA of its head if it comes from a fork, or `!merge cancel`, `!merge restart`, `!merge status`."
)
ONLY_MAINTAINERS = (
    "Only maintainers of this repository can say `--force` or `--priority urgent`. Ask one of them, or say it without."
)
MAY_NOT_SEE = "I may not see who may write to this repository. `mergeyard host check` says which right I need for that."
ONLY_WRITERS = (
    "Only people who may write to this repository, and merge into this branch where it is protected, can say that. "
    "Ask one of them."
)
_SPECIAL = re.compile(r"([\\`*_{}\[\]()<>+!|~&]|#(?!\d))")
_CALLS_AND_LINKS = re.compile(r"@(?=\w)|www(?=\.)|:(?=//)", re.IGNORECASE)
"""What forges turn into mentions and links without any brackets around it."""


class Told(Struct, frozen=True, kw_only=True):
    """All that the comment on a pull request says."""

    view: PullView
    batch: tuple[PrNumber, ...] = ()
    """All that are tested with it, itself among them."""
    failed: tuple[Status, ...] = ()
    page: str = ""
    """Ours about it, where people find us."""


def comment(told: Told) -> str:
    view = told.view
    headline = f"### {HEADLINES[view.stay.state]}"
    place = f" · place {view.position} in the queue for {quoted(view.target)}" if view.position else ""
    details = f" · [details]({told.page})" if told.page else ""
    return "\n".join(
        [MARK, headline + place, "", sentence(view), *_details(told), "", f"`{view.why.code}`{details}", ""]
    )


def sentence(view: PullView) -> str:
    """What it waits for, or how it ended."""
    waiting = ", ".join(f"#{number}" for number in view.why.waiting_for)
    return quoted(view.why.message) + (f" Waiting for {waiting}." if waiting else "")


def _details(told: Told) -> list[str]:
    lines = [f"- Failed: {_link(status)}" for status in told.failed]
    others = [f"#{number}" for number in told.batch if number != told.view.stay.number]
    if others:
        lines.append(f"- Tested together with {', '.join(others)}")
    return ["", *lines] if lines else []


def status(view: PullView, page: str) -> Status:
    """Says little while it waits: forges count how often something is written, and the comment tells the rest."""
    stay = view.stay
    waits = stay.state in ON_THEIR_WAY
    return Status(
        context=ours.STATUS,
        state=STATES.get(stay.state, StatusState.PENDING),
        at=stay.state_changed_at,
        url=page,
        description=IN_THE_QUEUE if waits else _shortened(f"{_plain(stay.state)}. {view.why.message}"),
    )


def _plain(state: PrState) -> str:
    return HEADLINES[state].partition(" ")[2]


def about_to_merge() -> Status:
    return Status(
        context=ours.STATUS, state=StatusState.SUCCESS, at=Instant(0), description="Tested, and about to be merged."
    )


def not_merged() -> Status:
    return Status(context=ours.STATUS, state=StatusState.PENDING, at=Instant(0), description="Not merged yet.")


# Answers to commands: each begins with a line of its own, by which it is found again.


def answer(comment: str, person: str, words: str) -> str:
    return f"{OURS} answers {comment} -->\n@{person} {words}\n"


def submitted(view: PullView) -> str:
    return f"{HEADLINES[view.stay.state]}. {sentence(view)}"


def misunderstood(word: str) -> str:
    return f"I do not know what {code(word)} means here. {USAGE}"


def name_the_head(head: Sha, *, pushed: bool) -> str:
    if pushed:
        return f"That commit is not the head of this pull request. Review its present head, then post `!merge {head}`."
    return (
        "This pull request comes from a fork, so name the head that you reviewed: its CI runs with the secrets and "
        f"the token of this repository. Review its present head, then post `!merge {head}`."
    )


def fork_by_label(head: Sha) -> str:
    return (
        "A label does not name the head of a fork that was reviewed. Review its present head, then post "
        f"!merge {head} instead."
    )


def refused(words: str) -> str:
    return quoted(words)


def test_pull_title(numbers: Sequence[PrNumber], target: str) -> str:
    """Forges take no long ones: 255 characters are the most at one of them, with a word of its own in front."""
    branch, others = _shortened(target, MOST_OF_A_BRANCH), len(numbers) - MOST_IN_A_TITLE
    named = ", ".join(f"#{number}" for number in numbers[:MOST_IN_A_TITLE]) or branch
    return f"[Mergeyard] Test {named}{f' and {others} more' if others > 0 else ''} on {branch}"


def test_pull_text(numbers: Sequence[PrNumber]) -> str:
    tested = ", ".join(f"#{number}" for number in numbers) or "the target branch itself"
    return f"This tests {tested} as it would be merged. It closes by itself: please do not merge, push or comment here."


# Quoting.


def quoted(text: str) -> str:
    """As it stands, whatever it looks like."""
    return _CALLS_AND_LINKS.sub("\\g<0>\u200b", _SPECIAL.sub(r"\\\1", " ".join(text.split())))


def code(text: str) -> str:
    return f"`{_shortened(' '.join(text.split())).replace('`', '')}`"


def _link(status: Status) -> str:
    plain = status.url.startswith(("https://", "http://")) and not set(status.url) & set(" <>()[]\"'\\")
    return f"[{quoted(status.context)}]({status.url})" if plain else quoted(status.context)


def _shortened(text: str, most: int = SHORT) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
