"""When a pull request is expected to merge."""

from msgspec import Struct

from mergeyard.domain.instants import Instant


class Expected(Struct, frozen=True):
    middle: Instant
    """As likely earlier as later."""
    late: Instant
    """In nine cases of ten it is earlier."""
