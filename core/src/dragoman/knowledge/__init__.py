"""What a database holds beside its structure: values, joins that nobody declared, why an answer is empty."""

from dragoman.knowledge.gate import Gate
from dragoman.knowledge.kept_catalog import KeptInspector
from dragoman.knowledge.knowledge import Knowledge
from dragoman.knowledge.store import KnowledgeFile

__all__ = ["Gate", "KeptInspector", "Knowledge", "KnowledgeFile"]
