"""Reasons why a bearer token does not sign anybody in. No message ever holds the token or a part of it."""

from __future__ import annotations


class InvalidToken(Exception):
    """The token is not accepted, and sending it again does not help. The text is a sentence for the client."""


class IssuerUnreachable(Exception):
    """The token cannot be checked now. `retry_after`: seconds."""

    def __init__(self, retry_after: int) -> None:
        super().__init__("The issuer of tokens does not answer.")
        self.retry_after = retry_after
