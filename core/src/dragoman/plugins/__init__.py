"""Find, load, isolate and route plugins. The only toucher of entry points and of pluggy's manager.

A plugin that is missing, broken, claimed twice or of a wrong version is a `DialectError` that names the distribution
and the remedy; the other databases keep working. Dialects load when a database needs them, policies all at the start.
"""

from dragoman.plugins.plugins import Installed, Plugins

__all__ = ["Installed", "Plugins"]
