"""Hooks for pushes to an origin: log them, hold them, lose their response, refuse them.

gate = PushGate(origin, LANDING_PUSH)
await gate.wait_for_push()    # the push has arrived, no ref has moved yet
gate.open()
"""

from pathlib import Path

from tests.support.polling import ASYNC_POLL_INTERVAL_S, wait_until
from tests.support.repositories import Origin

ZERO_SHA = "0" * 40
LANDING_PUSH = "*' refs/heads/main'*"
TEST_BRANCH_PUSH = f"'{ZERO_SHA} '*' refs/heads/mergeyard/'*"
"""Shell patterns for pushes, matched with the hook's input: `<old> <new> <ref>` per line."""
BEFORE_UPDATE, AFTER_UPDATE = "pre-receive", "post-receive"
MAX_PAUSES = 3000

FILTER_SCRIPT = 'updates=$(cat)\ncase "$updates" in {which}) ;; *) exit 0 ;; esac\n'
KILL_PUSHER_COMMAND = "kill -9 $(cut -d ' ' -f 5 /proc/$$/stat)"
"""Every git process that the product starts leads its own process group."""


class PushGate:
    """Holds matching pushes, before or after their refs moved, until it is opened."""

    def __init__(self, origin: Origin, which: str, when: str = BEFORE_UPDATE) -> None:
        self._arrived = _sibling_file(origin, "arrived")
        self._opened = _sibling_file(origin, "opened")
        waiting = f"while [ ! -e {self._opened} ] && [ $((left -= 1)) -gt 0 ]; do sleep {ASYNC_POLL_INTERVAL_S}; done"
        origin.install_hook(
            when, f"{FILTER_SCRIPT.format(which=which)}left={MAX_PAUSES}; touch {self._arrived}; {waiting}"
        )

    async def wait_for_push(self) -> None:
        await wait_until(self._arrived.exists)

    def open(self) -> None:
        self._opened.touch()


class PushLog:
    """All pushes with their updates; each push is one line, written atomically."""

    def __init__(self, origin: Origin) -> None:
        self._path = _sibling_file(origin, "pushes")
        self._path.touch()
        origin.install_hook(AFTER_UPDATE, f"updates=$(tr '\\n' ','); echo \"$updates\" >> {self._path}")

    def pushes(self) -> list[set[str]]:
        """Updates as `moved`, `made` or `deleted` with the ref, such as `moved refs/heads/main`."""
        entries = self._path.read_text().splitlines()
        return [{_describe_update(update) for update in entry.split(",") if update} for entry in entries]


def refuse_pushes(origin: Origin, which: str, message: str, only_if: str = "true") -> None:
    """`only_if` is a shell command, for which `$new` is the new commit of the first ref."""
    refuse = f"if {only_if}; then echo '{message}' >&2; exit 1; fi"
    read_new = 'new=$(echo "$updates" | { read -r _ new _; echo "$new"; })'
    origin.install_hook(BEFORE_UPDATE, f"{FILTER_SCRIPT.format(which=which)}{read_new}\n{refuse}")


def kill_pusher_after_update(origin: Origin, which: str, also: str = "") -> None:
    """The refs move, and the pushing process is killed before it knows."""
    origin.install_hook(AFTER_UPDATE, f"{FILTER_SCRIPT.format(which=which)}{also}\n{KILL_PUSHER_COMMAND}")


def remove_hooks(origin: Origin) -> None:
    for hook in (BEFORE_UPDATE, AFTER_UPDATE):
        (origin.path / "hooks" / hook).unlink(missing_ok=True)


def _sibling_file(origin: Origin, name: str) -> Path:
    """A file next to the repository, because tests move the repository away and back."""
    return origin.path.parent / f"{origin.path.name}.{name}"


def _describe_update(update: str) -> str:
    old, new, ref = update.split(" ")
    verb = "made" if old == ZERO_SHA else "deleted" if new == ZERO_SHA else "moved"
    return f"{verb} {ref}"
