"""Finds, loads, isolates and routes plugins. No other package uses entry points of plugins, or pluggy's manager.

A plugin that is missing, broken, claimed twice or of a wrong version is a `DialectError` that names the distribution
and the remedy; the other databases keep working. A dialect is loaded when a database needs it, and every policy at the
start.
"""

from dragoman.plugins.plugins import Installed, Plugins

__all__ = ["Installed", "Plugins"]
