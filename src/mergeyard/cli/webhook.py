"""`mergeyard webhook`: webhooks. The commands write to the store directly; a running server notices within seconds."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec
import typer

from mergeyard.cli.connection_options import parse_repo
from mergeyard.cli.local_store import LocalStore, with_local_store
from mergeyard.cli.output import (
    build_table,
    encode_json,
    exit_with_message,
    format_time,
    plain_text,
    print_message,
    print_table,
)
from mergeyard.domain.webhooks import Delivery, EventType, Topic, Webhook, WebhookKind

if TYPE_CHECKING:
    from mergeyard.service.webhooks.webhooks import WebhookChanges, WebhookClient, Webhooks

app = typer.Typer(
    name="webhook", no_args_is_help=True, help="Webhooks that send events to other programs and to Slack."
)

Result = TypeVar("Result")
encode = msgspec.json.Encoder().encode

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="As `mergeyard webhook list` shows it.")]
JsonOption = Annotated[bool, typer.Option("--json", help="For programs.")]
EventOption = Annotated[list[EventType] | None, typer.Option("--event", help="Only events of this type; default: all.")]
QueueOption = Annotated[
    list[str] | None,
    typer.Option("--queue", help="Only host/owner/name, or one of its branches: host/owner/name:main."),
]
DescriptionOption = Annotated[str | None, typer.Option("--description", help="What it is for.")]


@app.command()
@with_local_store
def create(
    store: LocalStore,
    url: Annotated[str, typer.Option(help="The URL that events are sent to, over https.")],
    slack: Annotated[bool, typer.Option("--slack", help="The URL is an incoming webhook of Slack.")] = False,
    event: EventOption = None,
    queue: QueueOption = None,
    description: DescriptionOption = None,
) -> None:
    """Create a webhook and print its signing secret; it is not shown again."""
    kind = WebhookKind.SLACK if slack else WebhookKind.WEBHOOK
    changes = _build_changes(event, queue, description=description)
    created, secret = _run_with_webhooks(
        store, lambda webhooks, client: webhooks.create(client, kind, url, changes, lambda _: b"")
    )
    print_message(f"Created webhook {created.id}.")
    if secret is not None:
        typer.echo(secret)


@app.command("list")
@with_local_store
def show(store: LocalStore, as_json: JsonOption = False) -> None:
    """List all webhooks, without their secrets."""
    from mergeyard.api.webhooks import present_webhook

    webhooks = _run_with_webhooks(store, lambda webhooks, client: webhooks.list_visible(client))
    if as_json:
        typer.echo(encode_json([present_webhook(webhook) for webhook in webhooks]))
        return
    table = build_table("id", "kind", "URL", "events", "queues", "description", "state")
    table.columns[0].no_wrap = True
    for webhook in webhooks:
        table.add_row(*map(plain_text, _to_row(webhook)))
    print_table(table, "No webhooks. Create one with `mergeyard webhook create`.")


@app.command()
@with_local_store
def update(
    store: LocalStore,
    webhook: IdArgument,
    url: Annotated[str | None, typer.Option(help="The new URL.")] = None,
    event: EventOption = None,
    queue: QueueOption = None,
    description: DescriptionOption = None,
    enabled: Annotated[
        bool | None, typer.Option("--enable/--disable", help="Continue where it stopped, or pause it.")
    ] = None,
) -> None:
    """Change a webhook; options that are not given stay as they are."""
    changes = _build_changes(event, queue, description=description, url=url, enabled=enabled)
    _run_with_webhooks(store, lambda webhooks, client: webhooks.update(client, webhook, changes, lambda _: b""))
    print_message(f"Changed webhook {webhook}.")


@app.command()
@with_local_store
def delete(store: LocalStore, webhook: IdArgument) -> None:
    """Delete a webhook; nothing is sent to it any longer."""
    _run_with_webhooks(store, lambda webhooks, client: webhooks.delete(client, webhook, b""))
    print_message(f"Deleted webhook {webhook}.")


@app.command("test")
@with_local_store
def send_test(store: LocalStore, webhook: IdArgument) -> None:
    """Send a test event now and report the result."""
    _report_delivery(_run_with_webhooks(store, lambda webhooks, client: webhooks.send_test(client, webhook, encode)))


@app.command()
@with_local_store
def resend(
    store: LocalStore,
    webhook: IdArgument,
    event: Annotated[str, typer.Argument(metavar="EVENT", help="As `mergeyard webhook deliveries` shows it.")],
) -> None:
    """Send an event again, now, and report the result."""
    _report_delivery(
        _run_with_webhooks(store, lambda webhooks, client: webhooks.resend_event(client, webhook, event, encode))
    )


@app.command()
@with_local_store
def deliveries(
    store: LocalStore,
    webhook: IdArgument,
    as_json: JsonOption = False,
    take: Annotated[int, typer.Option(min=1, max=200, help="How many at most.")] = 50,
) -> None:
    """List the last delivery attempts, newest first."""
    from mergeyard.api.webhooks import present_delivery

    attempts = _run_with_webhooks(store, lambda webhooks, client: webhooks.list_deliveries(client, webhook, take))
    if as_json:
        typer.echo(encode_json([present_delivery(delivery) for delivery in attempts]))
        return
    table = build_table("event", "type", "time", "attempt", "response")
    table.columns[0].no_wrap = True
    for delivery in map(present_delivery, attempts):
        time = format_time(datetime.fromisoformat(delivery.at))
        cells = (
            delivery.event_id,
            delivery.type,
            time,
            delivery.attempt,
            f"{delivery.status or '–'} {delivery.message}",
        )
        table.add_row(*map(plain_text, cells))
    print_table(table, "No deliveries yet. `mergeyard webhook test` sends a test event.")


@app.command()
@with_local_store
def reseal(store: LocalStore) -> None:
    """Encrypt all webhooks again with the newest key, which is the first line of the sealing key file."""
    count = _run_with_webhooks(store, lambda webhooks, _: webhooks.reencrypt_all())
    print_message(f"Encrypted {count} webhooks with the newest key. Older lines of the key file can be removed now.")


def _run_with_webhooks(store: LocalStore, use: "Callable[[Webhooks, WebhookClient], Awaitable[Result]]") -> Result:
    """Passes the operator as the client, who has access to all webhooks."""
    from mergeyard.service.webhooks.webhooks import OPERATOR
    from mergeyard.wiring import open_webhooks

    return store.run(open_webhooks, lambda webhooks: use(webhooks, OPERATOR))


def _build_changes(events: list[EventType] | None, queues: list[str] | None, **others: Any) -> "WebhookChanges":
    """Changes what is not None."""
    from mergeyard.service.webhooks.webhooks import WebhookChanges

    lists: dict[str, Any] = {
        "events": None if events is None else tuple(events),
        "topics": None if queues is None else tuple(map(_parse_topic, queues)),
    }
    return WebhookChanges(**{name: value for name, value in (lists | others).items() if value is not None})


def _parse_topic(text: str) -> Topic:
    """The host can contain a port, so the branch starts at the first colon after the first slash."""
    host, _, path = text.partition("/")
    repo, _, branch = path.partition(":")
    return Topic(parse_repo(f"{host}/{repo}"), branch or None)


def _report_delivery(response: bytes) -> None:
    delivery = msgspec.json.decode(response, type=Delivery)
    detail = f"{delivery.status or ''} {delivery.detail}".strip()
    if not delivery.delivered:
        exit_with_message(f"Not delivered: {detail}")
    print_message(f"Delivered {delivery.event}: {detail}")


def _to_row(webhook: Webhook) -> tuple[str, ...]:
    queues = [f"{topic.repo}{f':{topic.branch}' if topic.branch else ''}" for topic in webhook.topics]
    state = "enabled" if webhook.disabled is None else f"disabled ({webhook.disabled.reason})"
    return (
        webhook.id,
        webhook.kind,
        webhook.redacted_url,
        " ".join(webhook.events) or "all",
        " ".join(queues) or "all",
        webhook.description or "–",
        state,
    )
