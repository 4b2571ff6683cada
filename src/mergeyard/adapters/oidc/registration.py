"""How we are known to a provider, and what we ask it for."""

from msgspec import Struct


class Registration(Struct, frozen=True, kw_only=True):
    issuer: str
    """The provider's name for itself, which is also its address."""
    client_id: str
    client_secret: str
    back: str
    """Where it sends people back to, exactly as it was told there."""
    scopes: tuple[str, ...] = ("openid", "profile")
    name_claim: str = "preferred_username"
    groups_claim: str = "groups"

    def __repr__(self) -> str:
        """Secrets are never shown."""
        return f"Registration({self.issuer!r}, {self.client_id!r})"
