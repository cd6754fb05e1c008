"""What a database holds beside its structure: values, joins that nobody declared, reasons for an empty answer."""

from dragoman.knowledge.gate import Gate
from dragoman.knowledge.kept_catalog import KeptInspector
from dragoman.knowledge.knowledge import Knowledge
from dragoman.knowledge.store import KnowledgeFile

__all__ = ["Gate", "KeptInspector", "Knowledge", "KnowledgeFile"]
