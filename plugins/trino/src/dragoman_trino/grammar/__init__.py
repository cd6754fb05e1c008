"""A recursive descent parser of Trino's queries: finds what a statement reads and calls, and runs nothing.

Trino has no grammar that can be embedded. Its statements cannot be hidden in one another: a text that begins as a query
is one or does not parse, and acts only through the functions it calls. So the parser accepts a little more than the
server does (it checks neither types nor precedence). But every name before a parenthesis is known to be a call, an
alias or a word of the grammar, and every relation is found.
"""

from dragoman_trino.grammar.found import Found, Mention
from dragoman_trino.grammar.statements import Statements

__all__ = ["Found", "Mention", "Statements"]
