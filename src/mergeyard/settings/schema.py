"""All settings of the service, with their ranges and defaults."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import parse_qs, urlsplit

from msgspec import Meta, Struct, structs

from mergeyard.domain.access import Scope
from mergeyard.ports.forge import ChecksFrom

SQLITE_PREFIX = "sqlite:///"
POSTGRESQL_PREFIXES = ("postgresql://", "postgres://")

Role = Literal["all", "api", "worker"]
LogFormat = Literal["auto", "human", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]
SandboxMode = Literal["auto", "bwrap", "none"]
UnreadableRules = Literal["unmet", "unknown"]
UrgentFrom = Literal["maintainers", "writers"]
Address = Annotated[str, Meta(pattern=r"^[^\s/]+\Z", description="an address or a name to listen on")]
Folder = Annotated[Path, Meta(description="the path of a folder")]
KeyFile = Annotated[Path, Meta(description="the path of a file")]
DatabaseUrl = Annotated[
    str, Meta(description="an address such as postgresql://user@host/name or sqlite:///mergeyard.db")
]
Folders = Annotated[
    str, Meta(pattern=r"^(/[^:\x00]*(:/[^:\x00]*)*)?\Z", description="absolute paths of folders, separated by colons")
]
Proxies = Annotated[str, Meta(description="addresses or networks, such as 10.0.0.5, 172.16.0.0/12")]
WebAddress = Annotated[str, Meta(description="an address such as https://queue.example.com")]
# git strips some characters from names and addresses: what remains must not be empty or break the commit header.
GitName = Annotated[
    str, Meta(pattern=r"^[^<>\x00-\x1f]*\w[^<>\x00-\x1f]*\Z", description="a name without < and > on one line")
]
GitEmail = Annotated[str, Meta(pattern=r"^[^<>\s\x00-\x1f]+\Z", description="an address without <, > and spaces")]
RetentionDays = Annotated[int, Meta(ge=0, le=36_500)]
"""0: no deletion."""


GITHUB_CLOUD_SUFFIX = ".ghe.com"
"""Of the host names of enterprises on GitHub's cloud."""


class PlainHost(Struct, frozen=True, kw_only=True, tag=True):
    """Bare repositories in a folder: `<root>/<owner>/<name>.git`."""

    root: Path
    checks: ChecksFrom = ChecksFrom.API
    signing_key_file: Path | None = None


class Provider(StrEnum):
    GITHUB = "github"
    GITLAB = "gitlab"
    GITEA = "gitea"


class ForgeHost(Struct, frozen=True, kw_only=True, tag=True):
    """A forge and its credentials."""

    provider: Provider
    url: str
    api_url: str
    token: str | None = None
    app_id: str | None = None
    private_key: str | None = None
    webhook_secret: str | None = None
    checks: ChecksFrom = ChecksFrom.HOST
    poll_seconds: int = 20
    unreadable_rules: UnreadableRules = "unmet"
    """Whether a pull request waits while our account cannot read a rule of its base branch."""
    urgent_from: UrgentFrom = "maintainers"
    """Who can submit as urgent by a comment."""
    ca_file: Path | None = None
    """Certificates that are trusted instead of the public ones, by the API client and by git."""
    signing_key_file: Path | None = None
    """The private key that signs our commits. It is read again when the file changes."""

    @property
    def is_github_cloud(self) -> bool:
        """Whether the limits of GitHub's cloud apply: an enterprise server has its own, or none."""
        name = urlsplit(self.api_url).hostname or ""
        return self.provider is Provider.GITHUB and (name == "api.github.com" or name.endswith(GITHUB_CLOUD_SUFFIX))

    def __repr__(self) -> str:
        """Secrets are never shown."""
        return f"ForgeHost({self.provider.value!r}, {self.url!r})"


class Oidc(Struct, frozen=True, kw_only=True):
    """The single sign-on provider for the pages, and the scopes of its users."""

    issuer: str
    client_id: str
    client_secret: str
    label: str
    """The name of the provider on the sign-in page."""
    request_scopes: tuple[str, ...] = ("openid", "profile")
    name_claim: str = "preferred_username"
    groups_claim: str = "groups"
    default_scopes: frozenset[Scope] = frozenset()
    """The scopes of all users of the provider."""
    scopes: Mapping[str, frozenset[Scope]] = {}
    """Additional scopes by group."""

    def __repr__(self) -> str:
        """Secrets are never shown."""
        return f"Oidc({self.issuer!r}, {self.client_id!r})"


class Settings(Struct, frozen=True, kw_only=True):
    host: Address = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65_535)] = 8080
    """0: any free port."""
    data_dir: Folder = Path("mergeyard-data")
    database_url: DatabaseUrl | None = None
    database_url_file: KeyFile | None = None
    """A file that contains `database_url`; used if that is not set."""
    role: Role = "all"
    public_url: WebAddress | None = None
    trusted_proxies: Proxies = ""
    """The proxies whose `X-Forwarded-For` names the client, separated by commas."""
    log_format: LogFormat = "auto"
    log_level: LogLevel = "info"
    access_log: bool = False
    """Whether each request is logged."""
    open_metrics: bool = False
    committer_name: GitName = "Mergeyard"
    committer_email: GitEmail | None = None
    """None: the address of our account on the Git host."""
    git_max_memory_mb: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    """Of one git process that merges or compares; 0: a quarter of the memory that the service may use."""
    git_max_cpu_seconds: Annotated[int, Meta(ge=1, le=120)] = 60
    """Of one git process that merges or compares."""
    runner_limit: Annotated[int, Meta(ge=1, le=1000)] = 2
    """How many commands of `[checks]` run at once."""
    runner_sandbox: SandboxMode = "auto"
    runner_network: bool = False
    """Whether sandboxed checks have a network."""
    runner_paths: Folders = ""
    """Further folders that sandboxed checks can read."""
    runner_max_disk_mb: Annotated[int, Meta(ge=1, le=10_000_000)] = 10_240
    runner_max_processes: Annotated[int, Meta(ge=1, le=1_000_000)] = 1000
    allow_private_webhooks: bool = False
    sealing_key_file: KeyFile | None = None
    retention_runs_days: RetentionDays = 365
    retention_journal_days: RetentionDays = 365
    retention_statuses_days: RetentionDays = 30
    retention_targets_days: RetentionDays = 30
    retention_outputs_days: RetentionDays = 30
    targets_quota_mib: Annotated[int, Meta(ge=0, le=1_000_000)] = 5120
    """Per token; 0: no limit."""
    hosts: Mapping[str, PlainHost | ForgeHost] = {}
    oidc: Oidc | None = None

    @property
    def database_server_url(self) -> str | None:
        """The address of the PostgreSQL database that replicas share; None with SQLite."""
        return self.database_url if self.database_url and self.database_url.startswith(POSTGRESQL_PREFIXES) else None

    @property
    def can_run_checks(self) -> bool:
        """Whether this process runs commands of `[checks]` for any host."""
        return self.role != "api" and any(host.checks is ChecksFrom.RUN for host in self.hosts.values())

    @property
    def hosts_with_urgent_writers(self) -> frozenset[str]:
        """The Git hosts where write access is enough to submit as urgent by a comment."""
        forges = ((name, host) for name, host in self.hosts.items() if isinstance(host, ForgeHost))
        return frozenset(name for name, host in forges if host.urgent_from == "writers")

    @property
    def is_database_unverified(self) -> bool:
        """Whether the connection to a database on another machine does not verify its certificate."""
        if self.database_server_url is None:
            return False
        parts = urlsplit(self.database_server_url)
        query = parse_qs(parts.query)
        host = query.get("host", [parts.hostname or ""])[-1]
        is_local = host in ("", "localhost", "127.0.0.1", "::1") or host.startswith("/")
        return not is_local and query.get("sslmode", [""])[-1] != "verify-full"

    @property
    def database_path(self) -> Path:
        """The SQLite file, if there is no database server."""
        if self.database_url is None:
            return self.data_dir / "mergeyard.db"
        return Path(self.database_url.removeprefix(SQLITE_PREFIX))

    def build_public_url(self, port: int) -> str:
        """The public address of the service, or the local one with this port."""
        if self.public_url is not None:
            return self.public_url
        return f"http://[{self.host}]:{port}" if ":" in self.host else f"http://{self.host}:{port}"

    def __repr__(self) -> str:
        return f"Settings({', '.join(f'{name}={value!r}' for name, value in self.__rich_repr__())})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        values = structs.asdict(self) | {"database_url": _redact_database_url(self.database_url)}
        return list(values.items())


def _redact_database_url(database_url: str | None) -> str | None:
    """Only the address of a file is shown completely: those of servers can contain passwords in several places."""
    if database_url is None or database_url.startswith(SQLITE_PREFIX):
        return database_url
    return database_url.partition("://")[0][:20] + "://***" if "://" in database_url else "***"
