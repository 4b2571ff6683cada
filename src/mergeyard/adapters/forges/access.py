"""Where a forge is, and what opens it."""

from msgspec import Struct

from mergeyard.ports.host import ChecksFrom


class App(Struct, frozen=True):
    """A registered application of a forge, and the key with which it signs."""

    id: str
    private_key: str

    def __repr__(self) -> str:
        return f"App({self.id!r})"


class Access(Struct, frozen=True, kw_only=True):
    name: str
    """As people say it in addresses of repositories: `github.com`."""
    pages: str
    """Where people look at it: `https://github.com`. Git is spoken there too."""
    api: str
    """Where programs ask: `https://api.github.com`."""
    token: str | None = None
    app: App | None = None
    webhook_secret: str | None = None
    checks_from: ChecksFrom = ChecksFrom.HOST
    look_every: int = 20_000

    def __repr__(self) -> str:
        """Secrets are never shown."""
        return f"Access({self.name!r}, {self.pages!r}, {self.api!r})"
