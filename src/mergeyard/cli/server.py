"""Commands around the server, which a later version will bring."""

import typer


def serve() -> None:
    """Start the server (not in this version)."""
    typer.echo(
        "Mergeyard has no server yet: this version holds the engine that decides, and a demo of it.\n"
        "The server comes with a later version. Until then, try: mergeyard demo",
        err=True,
    )
    raise typer.Exit(1)
