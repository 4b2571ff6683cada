"""The statuses that must pass before anything merges, and who asks for them."""

from enum import StrEnum

from msgspec import Struct


class RequiredSource(StrEnum):
    SERVICE_CONFIG = "service_config"
    BRANCH_PROTECTION = "repo_provider_branch_protection"
    MERGE_INSTANCE = "merge_instance"


class Required(Struct, frozen=True):
    """The statuses that must pass, as the repository asks for them at the target's head."""

    statuses: tuple[str, ...] = ()
    source: RequiredSource = RequiredSource.SERVICE_CONFIG
    config_error: str | None = None
    """Why the repository's configuration cannot be read."""
