"""Every boundary that there is, by name: an effect, and a moment of it."""

from collections.abc import Iterable, Iterator
from enum import StrEnum

from mergeyard.api.routes import TABLE
from tests.kills import naming
from tests.kills.orders import Moment


class StoreKind(StrEnum):
    SQLITE = "sqlite"
    POSTGRES = "postgres"


OUT_OF_REACH = {
    "vouched_for_dropped": "only where a provider of identities vouches for people",
    "conversation": "only on forges that have comments",
    "expired_deleted": "only when records are days old",
}
"""What these servers never write, and why."""

COMMITS = (*naming.OF_WRITE.values(), *naming.PART_OF_TURN)
PUSHES = (naming.MADE, naming.LANDING, naming.DIRECT_LANDING, naming.DELETED, naming.WITHDRAWN)
ANSWERS = (*(name for name, row in TABLE.items() if row.get("writes")), "read", "refusal", "page")
EFFECTS = (
    *(f"store.commit:{kind}" for kind in COMMITS if kind not in OUT_OF_REACH),
    *(f"git.push:{kind}" for kind in PUSHES),
    *(f"answer:{name}" for name in ANSWERS),
    *("git.fetch", "git.mirror_made", "git.export", "host.mark_merged", "webhook.send"),
    *("check.start", "check.stop", "check.began", "check.ended"),
    *("store.open", "store.migrate"),
    *("store.close", "check.close", "host.close"),
    *("store.enlist", "store.report", "store.claim", "store.resign", "store.call_out"),
)
OF_REPLICAS = ("store.commit:duty", "store.enlist", "store.report", "store.claim", "store.resign", "store.call_out")
"""Effects that only several replicas need."""
SEEN_WHEN_OVER = ("check.began", "check.ended")
"""What others do, and the server only hears of."""
AT_BIRTH = ("store.migrate",)
"""What happens to a database that is new."""
AT_THE_END = ("store.close", "check.close", "host.close", "store.resign")
"""What a server does that is ended politely."""

ANYWHERE = "anywhere"
"""A kill from outside, at a moment that the machine chooses."""

AROUND_LANDINGS = ("landing", "mark_merged", "branch_made", "stay_ended")
"""Where most is at stake, servers are killed most often."""


def boundaries(store: StoreKind) -> Iterator[str]:
    for effect in EFFECTS:
        if store is StoreKind.POSTGRES or effect not in OF_REPLICAS:
            yield from (f"{effect}:{moment}" for moment in moments_of(effect))
    yield ANYWHERE


def moments_of(effect: str) -> Iterable[Moment]:
    return (Moment.AFTER,) if effect in SEEN_WHEN_OVER else Moment


def effect_of(boundary: str) -> str:
    return boundary.rpartition(":")[0]


def weight(boundary: str) -> float:
    return 3.0 if any(word in boundary for word in AROUND_LANDINGS) else 1.0
