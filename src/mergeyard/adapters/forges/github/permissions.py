"""What an app must be allowed, what a token must be able to read, and why."""

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from mergeyard.ports.forge import Finding


class Need(Struct, frozen=True):
    permission: str
    level: str
    why: str

    @property
    def title(self) -> str:
        """As GitHub writes it on its pages."""
        words = {"statuses": "Commit statuses"}.get(self.permission, self.permission.replace("_", " ").capitalize())
        return f"{words}: {'Read and write' if self.level == 'write' else 'Read-only'}"


NEEDS = (
    Need("metadata", "read", "to find the repository"),
    Need("contents", "write", "to push test branches and to land what passed"),
    Need("workflows", "write", "to push pull requests that change files in .github/workflows"),
    Need("pull_requests", "write", "to read, merge and comment on pull requests"),
    Need("issues", "write", "to comment on pull requests and to take their labels off"),
    Need("statuses", "write", "to read commit statuses and to show the queue's own"),
    Need("checks", "read", "to read check runs, such as those of GitHub Actions"),
    Need("administration", "read", "to read from classic branch protection who must approve, and who can bypass that"),
)
LEVELS = ("read", "write", "admin")
EVENTS = ("pull_request", "pull_request_review", "issue_comment", "status", "check_run", "check_suite", "push")


def of_app(granted: Mapping[str, str], where: str) -> list[Finding]:
    """`where` says what a person opens to change them."""
    return [_granted(need, granted.get(need.permission), where) for need in NEEDS]


def requested(granted: Mapping[str, str]) -> dict[str, str]:
    """What a token is asked to allow: what we need, as far as it is granted, since GitHub refuses to allow more."""
    levels = {need.permission: (need.level, granted.get(need.permission, "")) for need in NEEDS}
    return {name: min(pair, key=LEVELS.index) for name, pair in levels.items() if pair[1] in LEVELS}


def of_events(subscribed: Collection[str], where: str) -> Finding:
    missing = [event for event in EVENTS if event not in subscribed and "*" not in subscribed]
    if not missing:
        return Finding(True, "webhooks tell of everything that matters")
    words = f"webhooks do not tell of {listed(missing)}: subscribe to these events {where}"
    return Finding(False, f"{words}; until then they are found by looking, which takes longer")


def listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _granted(need: Need, level: str | None, where: str) -> Finding:
    if level in ("admin", "write", need.level):
        return Finding(True, f"{need.title} is granted")
    return Finding(False, f"{need.title} is missing, which is needed {need.why}: grant it {where}")
