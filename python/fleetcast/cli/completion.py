"""`fleetcast completion`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from fleetcast.cli.common import Run, with_run


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@with_run
def completion(run: Run, shell: str) -> None:
    """Print the completion of commands and options for a shell.

    bash, zsh: eval "$(fleetcast completion bash)" in ~/.bashrc or ~/.zshrc. fish: fleetcast
    completion fish > ~/.config/fish/completions/fleetcast.fish.
    """
    commands = click.get_current_context().find_root().command
    kind = get_completion_class(shell)
    assert kind is not None  # noqa: S101 - click has these three
    script = kind(commands, {}, "fleetcast", "_FLEETCAST_COMPLETE").source()
    run.answer({"shell": shell, "script": script}, script)
