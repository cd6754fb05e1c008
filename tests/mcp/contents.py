"""What the SDK's client hands out, as the tests read it."""

from mcp_types import CallToolResult, ContentBlock, TextContent


def text_of(answer: CallToolResult) -> str:
    """The text that a tool's answer begins with."""
    return text_in(answer.content[0])


def text_in(content: ContentBlock) -> str:
    """The text of a content, which must be one."""
    assert isinstance(content, TextContent)
    return content.text
