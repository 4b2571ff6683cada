"""The kinds of values on the wire: what each means, how it is read, and how the OpenAPI document shows it."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from mergeyard.api import reading
from mergeyard.api.reading import Read
from mergeyard.domain import ids
from mergeyard.domain.instants import Instant
from mergeyard.domain.priorities import LOWEST, PRIORITIES
from mergeyard.domain.repositories import Repo
from mergeyard.service.written_targets import WrittenTargets

SHOWN = "x-shown"
"""Under this key a kind says how it is shown, where that is not how it is kept."""
A_BRANCH = (
    r"^(?!-)(?!mergeyard(?:/|$))(?!HEAD$)(?!\.)(?!/)(?!.*(?:\.\.|//|/\.|@\{|\.lock(?:/|$)))"
    r"[^\u0000-\u0020\u007f~^:?*\[\\]+(?<![./])$"
)


def says(text: str) -> Meta:
    return Meta(description=text)


def shown(text: str, schema: dict[str, Any]) -> Meta:
    return Meta(description=text, extra_json_schema={SHOWN: schema})


PrNumber = Annotated[
    int,
    Meta(
        ge=1,
        le=2**31 - 1,
        description="The pull request's number; a string of digits is taken too.",
        extra_json_schema={
            SHOWN: {
                "anyOf": [
                    {"type": "integer", "minimum": 1, "maximum": 2**31 - 1},
                    {"type": "string", "pattern": "^[1-9][0-9]{0,8}$"},
                ]
            }
        },
    ),
    Read(reading.number),
]
Cursor = Annotated[
    int,
    Meta(
        ge=0,
        le=10**18 - 1,
        description="The `next` or a `cursor` of an answer for the same queue: only what happened behind it. Anything "
        "else means from the first event that is kept.",
        extra_json_schema={
            SHOWN: {
                "anyOf": [
                    {"type": "string", "pattern": "^[0-9]{1,18}$"},
                    {"type": "integer", "minimum": 0, "maximum": 10**18 - 1},
                ]
            }
        },
    ),
    Read(reading.number),
]
Priority = Annotated[
    int,
    Meta(
        ge=0,
        le=LOWEST,
        description="0 is first, and needs the scope `priority`. `urgent` is 0, `high` 10, `medium` 100, `low` 200.",
        extra_json_schema={
            SHOWN: {
                "anyOf": [
                    {"type": "integer", "minimum": 0, "maximum": LOWEST},
                    {"type": "string", "enum": list(PRIORITIES)},
                ]
            }
        },
    ),
    Read(reading.priority),
]
WEB_ADDRESS = "^([hH][tT][tT][pP][sS]?://|$)"
"""Pages and clients make links of it, so no other scheme is accepted; empty means none."""
Sha = Annotated[
    ids.Sha,
    shown("A commit's full name.", {"type": "string", "pattern": "^([0-9a-f]{40}|[0-9a-f]{64})$"}),
    Read(reading.sha),
]
Time = Annotated[
    Instant,
    shown("ISO 8601 with an offset or Z.", {"type": "string", "format": "date-time"}),
    Read(reading.time),
]
TargetBranch = Annotated[
    str,
    shown("The branch that the merge queue targets.", {"type": "string", "maxLength": 255, "pattern": A_BRANCH}),
    Read(reading.target_branch),
]
ImpactedTargets = Annotated[
    WrittenTargets,
    shown(
        "Names of build or test targets, or `ALL`. An empty list means that it impacts nothing.",
        {
            "anyOf": [
                {"type": "array", "items": {"type": "string", "minLength": 1, "maxLength": 1024}},
                {"type": "string", "enum": ["ALL", "IMPACTS_ALL"]},
            ]
        },
    ),
    Read(reading.targets),
]
_PART = {"type": "string", "minLength": 1, "maxLength": 100, "pattern": r"^(?!-)(?!\.{1,2}$)[A-Za-z0-9._-]+$"}
_GROUP = r"(?![-.])(?![^/]*\.git(/|$))[A-Za-z0-9._-]{1,100}"
_OWNER = {
    "type": "string",
    "minLength": 1,
    "pattern": rf"^(?:(?!-)(?!\.{{1,2}}$)[A-Za-z0-9._-]{{1,100}}|{_GROUP}(/{_GROUP}){{1,20}})$",
}


class RepoReference(Struct, frozen=True):
    """Which repository is meant."""

    host: Annotated[str, says("Host name of the Git provider."), Read(reading.host)]
    owner: Annotated[
        str,
        shown("Owner or organization, or groups within groups: `acme/tools`.", _OWNER),
        Read(reading.owner_of_a_repository),
    ]
    name: Annotated[str, shown("Name of the repository.", _PART), Read(reading.part_of_a_repository)]

    @classmethod
    def to(cls, repo: Repo) -> "RepoReference":
        return cls(repo.host, repo.owner, repo.name)

    @property
    def repo(self) -> Repo:
        return Repo(self.host, self.owner, self.name)
