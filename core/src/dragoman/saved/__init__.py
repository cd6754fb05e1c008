"""Saved queries: SQL files with a front matter in comments. A team writes them, and agents run them by name."""

from dragoman.saved.files import FileProblem, SavedQueries, write
from dragoman.saved.queries import NAME, Parameter, SavedQuery

__all__ = ["NAME", "FileProblem", "Parameter", "SavedQueries", "SavedQuery", "write"]
