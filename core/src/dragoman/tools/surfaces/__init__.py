"""What a server offers beside its tools: resources, prompts, and completions of their arguments."""

from dragoman.tools.surfaces.changes import Backlog, Change, Changes
from dragoman.tools.surfaces.completing import Completion, complete
from dragoman.tools.surfaces.items import Content, Prompt, Resource, Template, UnknownPrompt, UnknownResource
from dragoman.tools.surfaces.surfaces import Surfaces

__all__ = [
    "Backlog",
    "Change",
    "Changes",
    "Completion",
    "Content",
    "Prompt",
    "Resource",
    "Surfaces",
    "Template",
    "UnknownPrompt",
    "UnknownResource",
    "complete",
]
