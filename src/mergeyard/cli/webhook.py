"""Commands around webhooks; they work beside a running server, which follows within seconds."""

from typing import Annotated, TypeVar

import msgspec
import typer
from msgspec import UNSET, UnsetType
from rich.table import Column, Table

from mergeyard.api.webhooks import delivery_shown, webhook_shown
from mergeyard.cli.exits import stop_with
from mergeyard.cli.opening import store_settings, with_store
from mergeyard.cli.options import ConfigFile, DatabaseUrl, DataDir, repo_named
from mergeyard.cli.plainly import in_json, plain, say
from mergeyard.cli.terminal import put
from mergeyard.domain.webhooks import Delivery, EventType, Topic, Webhook, WebhookKind
from mergeyard.service.telling.webhooks import OPERATOR, Wishes
from mergeyard.wiring import open_office

app = typer.Typer(name="webhook", no_args_is_help=True, help="Events sent to other programs, and to Slack.")

Value = TypeVar("Value")
encode = msgspec.json.Encoder().encode

Id = Annotated[str, typer.Argument(metavar="ID", help="As `mergeyard webhook list` shows it.")]
AsJson = Annotated[bool, typer.Option("--json", help="For programs.")]
Event = Annotated[list[EventType] | None, typer.Option("--event", help="Only events of this type; else all.")]
Queue = Annotated[
    list[str] | None,
    typer.Option("--queue", help="Only host/owner/name, or one of its branches: host/owner/name:main."),
]
Describe = Annotated[str | None, typer.Option("--description", help="What it is for.")]


@app.command()
def create(
    url: Annotated[str, typer.Option(help="Where events are sent, over https.")],
    slack: Annotated[bool, typer.Option("--slack", help="The address is an incoming webhook of Slack.")] = False,
    event: Event = None,
    queue: Queue = None,
    description: Describe = None,
    config: ConfigFile = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Make a webhook, and print the secret that its events are signed with, this once."""
    settings = store_settings(config, data_dir, database_url)
    kind, wishes = WebhookKind.SLACK if slack else WebhookKind.WEBHOOK, _wishes(event, queue, description)
    made, secret = with_store(
        open_office, settings, lambda office: office.webhooks.create(OPERATOR, kind, url, wishes, lambda _: b"")
    )
    say(f"Made webhook {made.id}.")
    if secret is not None:
        typer.echo(secret)


@app.command("list")
def show(
    as_json: AsJson = False,
    config: ConfigFile = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """List all webhooks, without their secrets."""
    settings = store_settings(config, data_dir, database_url)
    webhooks = with_store(open_office, settings, lambda office: office.webhooks.seen_by(OPERATOR))
    if as_json:
        typer.echo(in_json([webhook_shown(webhook) for webhook in webhooks]))
        return
    table = Table(Column("id", no_wrap=True), "kind", "address", "events", "queues", "description", "state")
    for webhook in webhooks:
        table.add_row(*map(plain, _row(webhook)))
    put(table)


@app.command()
def update(
    webhook: Id,
    url: Annotated[str | None, typer.Option(help="Where events are sent from now on.")] = None,
    event: Event = None,
    queue: Queue = None,
    description: Describe = None,
    enabled: Annotated[
        bool | None, typer.Option("--enable/--disable", help="Go on where it stopped, or send nothing for now.")
    ] = None,
    config: ConfigFile = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Change a webhook; what is not given stays as it is."""
    settings = store_settings(config, data_dir, database_url)
    wishes = msgspec.structs.replace(_wishes(event, queue, description), url=_given(url), enabled=_given(enabled))
    with_store(open_office, settings, lambda office: office.webhooks.update(OPERATOR, webhook, wishes, lambda _: b""))
    say(f"Changed webhook {webhook}.")


@app.command()
def delete(webhook: Id, config: ConfigFile = None, data_dir: DataDir = None, database_url: DatabaseUrl = None) -> None:
    """Send nothing there any more, and forget it."""
    settings = store_settings(config, data_dir, database_url)
    with_store(open_office, settings, lambda office: office.webhooks.delete(OPERATOR, webhook, b""))
    say(f"Deleted webhook {webhook}.")


@app.command("test")
def try_out(webhook: Id, config: ConfigFile = None, data_dir: DataDir = None, database_url: DatabaseUrl = None) -> None:
    """Send a test event now, and tell how it went."""
    settings = store_settings(config, data_dir, database_url)
    _tell(with_store(open_office, settings, lambda office: office.trying.test(OPERATOR, webhook, encode)))


@app.command()
def resend(
    webhook: Id,
    event: Annotated[str, typer.Argument(metavar="EVENT", help="As `mergeyard webhook deliveries` shows it.")],
    config: ConfigFile = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Send an event once more, now, and tell how it went."""
    settings = store_settings(config, data_dir, database_url)
    _tell(with_store(open_office, settings, lambda office: office.trying.resend(OPERATOR, webhook, event, encode)))


@app.command()
def deliveries(
    webhook: Id,
    as_json: AsJson = False,
    take: Annotated[int, typer.Option(min=1, max=200, help="How many at most.")] = 50,
    config: ConfigFile = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """List the last attempts to send something there, newest first."""
    settings = store_settings(config, data_dir, database_url)
    found = with_store(open_office, settings, lambda office: office.webhooks.deliveries(OPERATOR, webhook, take))
    if as_json:
        typer.echo(in_json([delivery_shown(delivery) for delivery in found]))
        return
    table = Table(Column("event", no_wrap=True), "type", "at", "attempt", "answer")
    for delivery in map(delivery_shown, found):
        answer = f"{delivery.status or '–'} {delivery.message}"
        told = (delivery.event_id, delivery.type, delivery.at, delivery.attempt, answer)
        table.add_row(*map(plain, told))
    put(table)


@app.command()
def reseal(config: ConfigFile = None, data_dir: DataDir = None, database_url: DatabaseUrl = None) -> None:
    """Seal all webhooks again with the newest key, which is the first line of the sealing key file."""
    settings = store_settings(config, data_dir, database_url)
    count = with_store(open_office, settings, lambda office: office.webhooks.reseal())
    say(f"Sealed {count} webhooks with the newest key. Older lines of the key file can be removed now.")


def _wishes(events: list[EventType] | None, queues: list[str] | None, description: str | None) -> Wishes:
    return Wishes(
        events=UNSET if events is None else tuple(events),
        topics=UNSET if queues is None else tuple(map(_topic, queues)),
        description=_given(description),
    )


def _given(value: Value | None) -> Value | UnsetType:
    return UNSET if value is None else value


def _topic(text: str) -> Topic:
    """The host may have a port, so the branch stands behind the colon after the last slash of the name."""
    host, _, path = text.partition("/")
    repo, _, branch = path.partition(":")
    return Topic(repo_named(f"{host}/{repo}"), branch or None)


def _tell(answer: bytes) -> None:
    delivery = msgspec.json.decode(answer, type=Delivery)
    words = f"{delivery.status or ''} {delivery.words}".strip()
    if not delivery.delivered:
        stop_with(f"Not delivered: {words}")
    say(f"Delivered {delivery.event}: {words}")


def _row(webhook: Webhook) -> tuple[str, ...]:
    queues = [f"{topic.repo}{f':{topic.branch}' if topic.branch else ''}" for topic in webhook.topics]
    state = "enabled" if webhook.disabled is None else f"disabled ({webhook.disabled.why})"
    return (
        webhook.id,
        webhook.kind,
        webhook.shown_url,
        " ".join(webhook.events) or "all",
        " ".join(queues) or "all",
        webhook.description or "–",
        state,
    )
