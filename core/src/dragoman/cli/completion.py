"""`dragoman completion`: print the code that a shell loads to complete commands, options and databases."""

from __future__ import annotations

import argparse

from dragoman.cli.common import add_source_arguments

EXAMPLES = """\
examples:
  eval "$(dragoman completion bash)"          in ~/.bashrc
  eval "$(dragoman completion zsh)"           in ~/.zshrc, after compinit
  dragoman completion fish > ~/.config/fish/completions/dragoman.fish
"""
SHELLS = ("bash", "zsh", "fish")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.epilog = EXAMPLES
    parser.add_argument("shell", choices=SHELLS)
    add_source_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the code to load."""
    from argcomplete.shell_integration import shellcode

    print(shellcode(["dragoman"], shell=arguments.shell))
    return 0
