"""Trino's grammar of queries, read by recursive descent: what a statement reads and calls, and nothing executed.

Trino has no grammar that can be embedded, and its statements cannot hide in one another: what begins as a query is one
or does not parse, and acts only through the functions it calls. So the reader accepts a little more than the server
does (types are not checked, nor precedence), but every name before a parenthesis is known to be a call, an alias or a
word of the grammar, and every relation is found.
"""

from dragoman_trino.grammar.found import Found, Mention
from dragoman_trino.grammar.statements import Statements

__all__ = ["Found", "Mention", "Statements"]
