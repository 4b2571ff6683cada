"""What may happen to a push at an origin: it is written down, it is held, its answer is lost, it is refused.

gate = Gate(origin, LANDING)
await gate.arrival()    # the push is here, and nothing has moved
gate.open()
"""

from pathlib import Path

from tests.support.repositories import Origin
from tests.support.waiting import PAUSE, come_true

NOTHING = "0" * 40
LANDING = "*' refs/heads/main'*"
BUILD = f"'{NOTHING} '*' refs/heads/mergeyard/'*"
"""Which pushes are meant, as the shell matches what git tells a hook: `<old> <new> <ref>` per line."""
BEFORE, AFTER = "pre-receive", "post-receive"
MOST_PAUSES = 3000

ONLY = 'updates=$(cat)\ncase "$updates" in {which}) ;; *) exit 0 ;; esac\n'
KILL_THE_PUSHER = "kill -9 $(cut -d ' ' -f 5 /proc/$$/stat)"
"""Every git that we start leads a group of its own."""


class Gate:
    """Holds every push of a kind, before or after it has moved the refs, until it is opened."""

    def __init__(self, origin: Origin, which: str, when: str = BEFORE) -> None:
        self._arrived = _place(origin, "arrived")
        self._opened = _place(origin, "opened")
        waiting = f"while [ ! -e {self._opened} ] && [ $((left -= 1)) -gt 0 ]; do sleep {PAUSE}; done"
        origin.hook(when, f"{ONLY.format(which=which)}left={MOST_PAUSES}; touch {self._arrived}; {waiting}")

    async def arrival(self) -> None:
        await come_true(self._arrived.exists)

    def open(self) -> None:
        self._opened.touch()


class Logbook:
    """All pushes, each with the updates that it made, in a line that is written at once."""

    def __init__(self, origin: Origin) -> None:
        self._path = _place(origin, "pushes")
        self._path.touch()
        origin.hook(AFTER, f"updates=$(tr '\\n' ','); echo \"$updates\" >> {self._path}")

    def pushes(self) -> list[set[str]]:
        """In the words `moved`, `made` and `deleted`, e.g. `moved refs/heads/main`."""
        entries = self._path.read_text().splitlines()
        return [{_in_words(update) for update in entry.split(",") if update} for entry in entries]


def refuse(origin: Origin, which: str, words: str) -> None:
    origin.hook(BEFORE, f"{ONLY.format(which=which)}echo '{words}' >&2; exit 1")


def lose_answer(origin: Origin, which: str, also: str = "") -> None:
    """The refs have moved, and whoever pushed dies without knowing it."""
    origin.hook(AFTER, f"{ONLY.format(which=which)}{also}\n{KILL_THE_PUSHER}")


def welcome_all(origin: Origin) -> None:
    for hook in (BEFORE, AFTER):
        (origin.path / "hooks" / hook).unlink(missing_ok=True)


def _place(origin: Origin, name: str) -> Path:
    """Beside the repository, which may vanish and come back."""
    return origin.path.parent / f"{origin.path.name}.{name}"


def _in_words(update: str) -> str:
    old, new, ref = update.split(" ")
    verb = "made" if old == NOTHING else "deleted" if new == NOTHING else "moved"
    return f"{verb} {ref}"
