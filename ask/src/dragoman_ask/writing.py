"""The conversation in which the model writes queries for one database."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import msgspec
from dragoman.config import ModelSettings
from dragoman.gateway.opened import OpenDatabase
from dragoman.meaning.search import rank
from dragoman.model import Table

from dragoman_ask import examples
from dragoman_ask.linking import Schema, Send, link, tell
from dragoman_ask.models import Message
from dragoman_ask.replies import Written
from dragoman_ask.session import Session

NOTES = 4_000
"""The most characters of text from files: terms, metrics, conventions."""
LOOKS = 12
"""The number of tables that a model may ask to see, once per question."""


@dataclass(slots=True)
class Conversation:
    """The conversation so far. `others`: tables that the model knows only by name.

    It may ask to see some of them once.
    """

    opened: OpenDatabase
    send: Send
    messages: list[Message]
    others: dict[str, Table]

    def copy(self) -> Conversation:
        """Return a copy that continues from here."""
        return Conversation(self.opened, self.send, [*self.messages], self.others)

    def add_reply(self, written: Written) -> None:
        """Add the model's reply."""
        self.messages.append(Message("assistant", msgspec.json.encode(written).decode()))


async def begin(session: Session, opened: OpenDatabase, settings: ModelSettings) -> Conversation:
    """Return the conversation up to the model's turn."""
    schema = await link(opened, session.question.text, settings.send)
    fence, database = session.fence, opened.config
    about = [
        f"-- {line}" for line in (" ".join((await opened.describe()).split()), *await _notes(session, opened)) if line
    ]
    system = session.fill(
        "system", dialect=opened.dialect.name, database=database.name, instructions=opened.dialect.instructions
    )
    text = session.fill(
        "write",
        schema=fence.around("\n".join([*about, schema.text]), "schema"),
        more=_more(session, schema),
        history=_history(session),
        examples=await examples.tell(session, opened, settings.examples_dir),
    )
    return Conversation(opened, settings.send, [Message("system", system), Message("user", text)], dict(schema.others))


async def _notes(session: Session, opened: OpenDatabase) -> list[str]:
    """Return text about the database from files: all of it if it is short, else what matches the question best."""
    written = await opened.read_files()
    if written is None:
        return []
    notes = [str(note) for note in written.notes]
    if sum(map(len, notes)) > NOTES:
        notes = rank(session.question.text, notes, str)
    sizes = itertools.accumulate(len(note) for note in notes)
    return [note for note, end in zip(notes, sizes, strict=True) if end <= NOTES]


def _more(session: Session, schema: Schema) -> str:
    if not schema.others:
        return ""
    return f"Other tables, of which you know the names only:\n\n{session.fence.around(schema.names, 'names')}"


def _history(session: Session) -> str:
    turns = [f"Question: {turn.question}\nQuery: {turn.sql}" for turn in session.question.history]
    if not turns:
        return ""
    told = session.fence.around("\n\n".join(turns), "conversation")
    return f"Earlier in this conversation; the question below may continue it:\n\n{told}"


async def write(session: Session, conversation: Conversation) -> Written:
    """Return the model's next reply, after it has seen the tables that it asks for, if any."""
    written = await session.ask(conversation.messages, Written)
    wanted = [table for name in written.tables if (table := conversation.others.get(name))][:LOOKS]
    if written.kind != "look" or not wanted:
        return written
    conversation.others = {}
    conversation.add_reply(written)
    schema = await tell(conversation.opened, wanted, conversation.send)
    told = session.fill("look", schema=session.fence.around(schema, "schema"))
    conversation.messages.append(Message("user", told))
    return await session.ask(conversation.messages, Written)
