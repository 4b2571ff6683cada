"""What all answers have in common: camel case on the wire, and no fear of members or words that are new."""

from msgspec import Struct


class Answer(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A newer server may say more than is here. States and codes are plain text, so a new one breaks nothing.

    Written as JSON again, it has the members that the server sent: what has a default here is left out there.
    """
