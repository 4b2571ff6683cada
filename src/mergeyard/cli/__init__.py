"""The command line: the application, its commands, and the options of `mergeyard serve`.

Every call imports the modules of all commands. They import the server, its settings and its database drivers only
inside the functions that need them, so that the client commands, `--help` and `--version` stay fast.
"""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from mergeyard import __version__
from mergeyard.cli import db, demo, history, host, pr, pull_requests, queues, targets, token, top, webhook, whatif
from mergeyard.cli.connection_options import HELP_OPTIONS
from mergeyard.cli.local_store import ConfigFileOption, DatabaseUrlOption, DataDirOption
from mergeyard.cli.output import ExitCode


class Commands(TyperGroup):
    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        with mark_usage_errors():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: Any) -> Any:
        with mark_usage_errors():
            return super().invoke(ctx)


@contextmanager
def mark_usage_errors() -> Generator[None]:
    """Typer exits with 2 on a usage error, which is our code for a cancelled pull request."""
    try:
        yield
    except typer.TyperException as error:
        error.exit_code = ExitCode.USAGE_ERROR
        raise


app = typer.Typer(
    name="mergeyard",
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": HELP_OPTIONS},
)


def show_version(requested: bool) -> None:
    if requested:
        typer.echo(__version__)
        raise typer.Exit


VersionOption = Annotated[bool, typer.Option("--version", callback=show_version, help="Show the version and exit.")]


@app.callback()
def mergeyard(version: VersionOption = False) -> None:
    """A self-hosted merge queue."""


def serve(
    config: ConfigFileOption = None,
    host: Annotated[str | None, typer.Option(help="The address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="The port to listen on; 0 chooses a free one.")] = None,
    data_dir: DataDirOption = None,
    database_url: DatabaseUrlOption = None,
    database_url_file: Annotated[str | None, typer.Option(help="A file that contains the database URL.")] = None,
    role: Annotated[str | None, typer.Option(help="What this process does: all, api or worker.")] = None,
    public_url: Annotated[str | None, typer.Option(help="The URL under which users reach the service.")] = None,
    trusted_proxies: Annotated[str | None, typer.Option(help="Proxies whose X-Forwarded-For is trusted.")] = None,
    log_format: Annotated[str | None, typer.Option(help="auto, human or json.")] = None,
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning or error.")] = None,
    access_log: Annotated[bool | None, typer.Option(help="Log every request.")] = None,
    open_metrics: Annotated[bool | None, typer.Option(help="Serve /metrics without a token.")] = None,
    committer_name: Annotated[str | None, typer.Option(help="Committer name of the queue's commits.")] = None,
    committer_email: Annotated[str | None, typer.Option(help="Committer email of the queue's commits.")] = None,
    runner_limit: Annotated[int | None, typer.Option(help="How many checks run concurrently.")] = None,
    runner_sandbox: Annotated[str | None, typer.Option(help="How checks are sandboxed: auto, bwrap or none.")] = None,
    runner_network: Annotated[bool | None, typer.Option(help="Give sandboxed checks a network.")] = None,
    runner_paths: Annotated[str | None, typer.Option(help="More folders that sandboxed checks can read.")] = None,
    runner_max_disk_mb: Annotated[int | None, typer.Option(help="Disk space for each check, in MiB.")] = None,
    runner_max_processes: Annotated[int | None, typer.Option(help="Maximum number of processes of each check.")] = None,
    allow_private_webhooks: Annotated[bool | None, typer.Option(help="Allow webhooks to private addresses.")] = None,
    sealing_key_file: Annotated[
        str | None, typer.Option(help="The key file that encrypts the secrets of webhooks.")
    ] = None,
    retention_runs_days: Annotated[int | None, typer.Option(help="Days to keep finished runs and submissions.")] = None,
    retention_journal_days: Annotated[int | None, typer.Option(help="Days to keep events and the audit log.")] = None,
    retention_statuses_days: Annotated[int | None, typer.Option(help="Days to keep statuses without a run.")] = None,
    retention_targets_days: Annotated[int | None, typer.Option(help="Days to keep impacted targets.")] = None,
    retention_outputs_days: Annotated[int | None, typer.Option(help="Days to keep the output of checks.")] = None,
    targets_quota_mib: Annotated[int | None, typer.Option(help="MiB of impacted targets per token.")] = None,
) -> None:
    """Start the server."""
    options = {name: value for name, value in locals().items() if name != "config"}
    from mergeyard.cli import server

    server.serve(config, options)


PANELS = {
    "Pull requests": [
        *(pull_requests.submit, pull_requests.cancel, pull_requests.restart, pull_requests.status, pull_requests.watch),
        *(targets.app, pr.app),
    ],
    "Queues": [queues.app, history.app, history.events, history.verify, whatif.whatif, top.top],
    "Running the service": [serve, demo.demo, token.app, webhook.app, host.app, db.app],
}
for panel, commands in PANELS.items():
    for command in commands:
        if isinstance(command, typer.Typer):
            app.add_typer(command, rich_help_panel=panel)
        else:
            app.command(rich_help_panel=panel)(command)
