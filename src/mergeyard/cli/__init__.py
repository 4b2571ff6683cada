"""The command line: the application, its commands, and the options of `mergeyard serve`.

Every call imports the modules of all commands. They import the server, its settings and its database drivers only
inside the functions that need them, so that the client commands, `--help` and `--version` stay fast.
"""

import inspect
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Annotated, Any, Literal

import typer
from typer.completion import (
    completion_init,  # pyright: ignore[reportPrivateImportUsage]
    get_completion_script,  # pyright: ignore[reportPrivateImportUsage]
)
from typer.core import TyperGroup
from typer.models import CommandInfo

from mergeyard.cli import (
    db,
    demo,
    history,
    host,
    login,
    pr,
    pull_requests,
    queues,
    targets,
    token,
    top,
    webhook,
    whatif,
)
from mergeyard.cli.connection_options import HELP_OPTIONS
from mergeyard.cli.local_store import ConfigFileOption, DatabaseUrlOption, DataDirOption
from mergeyard.cli.output import INTERRUPTED_EXIT_CODE, ExitCode, exit_with_usage_error
from mergeyard.cli.session import ServerSession


class Commands(TyperGroup):
    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        with exit_on_usage_errors():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: Any) -> Any:
        with exit_on_usage_errors():
            return super().invoke(ctx)


@contextmanager
def exit_on_usage_errors() -> Generator[None]:
    """Typer exits with 2 on a usage error, which is our code for a removed pull request, and draws a box around it."""
    try:
        yield
    except typer.TyperException as error:
        message, context = getattr(error, "message", ""), getattr(error, "ctx", None)
        if not message or context is None:  # a group without a command: its message is the help
            error.exit_code = ExitCode.USAGE_ERROR
            raise
        exit_with_usage_error(error.format_message(), hint=f"See `{context.command_path} --help`.")
    except typer.Abort:  # Ctrl-C or Ctrl-D at a question
        typer.echo(err=True)
        raise typer.Exit(INTERRUPTED_EXIT_CODE) from None


app = typer.Typer(
    name="mergeyard",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": HELP_OPTIONS},
)


def show_version(requested: bool) -> None:
    if requested:
        session = ServerSession()
        with session.exit_on_client_errors():
            login.show_version(session)
        raise typer.Exit


VERSION_HELP = "Print the version, and that of the default server if it responds."
VersionOption = Annotated[bool, typer.Option("--version", callback=show_version, help=VERSION_HELP)]
ROOT_EXAMPLES = (
    "mergeyard login https://queue.example.com",
    "mergeyard submit 12",
    "mergeyard status 12",
    "mergeyard queue show",
)


def format_examples(examples: Iterable[str]) -> str:
    return "\n".join(["Examples:", *(f"  {example}" for example in examples)])


@app.callback(epilog=format_examples(ROOT_EXAMPLES))
def mergeyard(version: VersionOption = False) -> None:
    """A merge queue that you host yourself."""


def completion(shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument(help="The shell.")]) -> None:
    """Print the script with which a shell completes commands, options and names.

    In bash, add this line to ~/.bashrc: source <(mergeyard completion bash).

    Examples:
        mergeyard completion bash > mergeyard.bash
        mergeyard completion zsh > ~/.zfunc/_mergeyard
        mergeyard completion fish > ~/.config/fish/completions/mergeyard.fish
    """
    typer.echo(get_completion_script(prog_name="mergeyard", complete_var="_MERGEYARD_COMPLETE", shell=shell))


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
    git_max_memory_mb: Annotated[int | None, typer.Option(help="Memory for each merge, in MiB.")] = None,
    git_max_cpu_seconds: Annotated[int | None, typer.Option(help="Processor time for each merge, in seconds.")] = None,
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
    """Start the server.

    Examples:
        mergeyard serve
        mergeyard serve --config /etc/mergeyard/mergeyard.toml --port 8080
    """
    options = {name: value for name, value in locals().items() if name != "config"}
    from mergeyard.cli import server

    server.serve(config, options)


PANELS = {
    "Pull requests": [
        *(pull_requests.submit, pull_requests.cancel, pull_requests.restart, pull_requests.status, pull_requests.watch),
        *(pull_requests.message, pull_requests.list_command, targets.app, targets.check_app, pr.app),
    ],
    "Queues": [queues.app, history.app, history.events, history.verify, whatif.whatif, top.top],
    "Servers": [login.login, login.logout, login.app, login.version, completion],
    "Running the service": [serve, demo.demo, token.app, webhook.app, host.app, db.app],
}


def move_examples(command: CommandInfo) -> list[str]:
    """Moves the examples of a docstring to the end of the help. Joins the lines of each paragraph, which Typer would
    break where the source code does."""
    assert command.callback is not None
    text, _, listed = inspect.cleandoc(command.callback.__doc__ or "").partition("\n\nExamples:\n")
    examples = [line.strip() for line in listed.splitlines()]
    command.help = "\n\n".join(paragraph.replace("\n", " ") for paragraph in text.split("\n\n"))
    command.epilog = format_examples(examples) if examples else None
    return examples


def add_commands() -> None:
    """The help of a group has the first example of each command."""
    for panel, commands in PANELS.items():
        for command in commands:
            if isinstance(command, typer.Typer):
                examples = [example for info in command.registered_commands for example in move_examples(info)[:1]]
                app.add_typer(command, rich_help_panel=panel, epilog=format_examples(examples))
            else:
                name = "list" if command is pull_requests.list_command else None
                app.command(name, rich_help_panel=panel)(command)
                move_examples(app.registered_commands[-1])


add_commands()
completion_init()  # Typer would do so only for its options that edit the start-up files of shells
