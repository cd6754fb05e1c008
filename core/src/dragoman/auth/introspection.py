"""Tokens that only the issuer can read: it is asked about each of them (RFC 7662)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus

from dragoman.auth.claims import is_access_token
from dragoman.auth.http import RETRY_AFTER, IssuerClient
from dragoman.auth.refusals import InvalidToken, IssuerUnreachable

if TYPE_CHECKING:
    from dragoman.config.settings import Auth


class IntrospectedTokens:
    """Asks the issuer about each token."""

    def __init__(self, client: IssuerClient, settings: Auth) -> None:
        self._client = client
        self._url = settings.introspection_url
        secret = settings.client_secret.reveal() if settings.client_secret else ""
        # Form-encoded before they are joined: RFC 6749, section 2.3.1.
        self._credentials = (quote_plus(settings.client_id), quote_plus(secret)) if settings.client_id else None

    async def claims(self, token: str, party: Hashable) -> dict[str, Any]:
        """Return what the issuer says about a token. Raises `InvalidToken`, `IssuerUnreachable`.

        `party`: who sent it. Parties take turns.
        """
        form = {"token": token, "token_type_hint": "access_token"}
        answer = await self._client.ask(
            "POST", self._url, party, data=form, auth=self._credentials, headers={"Accept": "application/json"}
        )
        active = answer.get("active")
        if not isinstance(active, bool):
            raise IssuerUnreachable(RETRY_AFTER)
        if not active:
            raise InvalidToken("The issuer does not accept this token.")
        if not is_access_token(answer):
            # Some issuers, such as Keycloak, call refresh tokens active too.
            raise InvalidToken("This is not an access token.")
        return answer
