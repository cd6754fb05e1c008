"""Saved queries: SQL files with a front matter of comments, which a team writes and agents run by name."""

from dragoman.saved.files import FileProblem, SavedQueries, write
from dragoman.saved.queries import NAME, Parameter, SavedQuery

__all__ = ["NAME", "FileProblem", "Parameter", "SavedQueries", "SavedQuery", "write"]
