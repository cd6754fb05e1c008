"""Static tokens: what is kept of them, whom they name, and when they stop."""

from datetime import UTC, datetime, timedelta

import pytest
from dragoman import Secret
from dragoman.auth import InvalidToken
from dragoman.auth.tokens import StaticTokens, hash_token, make_token
from dragoman.config import StaticToken

NOW = datetime.now(UTC)


def test_a_token_has_256_random_bits_behind_a_known_prefix():
    tokens = {make_token() for _ in range(100)}
    assert len(tokens) == 100
    assert all(len(token) == 47 and token.startswith("drg_") for token in tokens)


def test_a_token_names_its_principal_and_no_other_text_does():
    token = make_token()
    known = StaticTokens([StaticToken(name="ci", hash=hash_token(token), groups=frozenset({"build"}))])
    principal = known.find(token.encode())
    assert principal is not None
    assert (principal.name, principal.token, principal.groups) == ("ci", "ci", {"build"})
    for other in (token[:-1], token + "x", token.upper(), hash_token(token), "", make_token()):
        assert known.find(other.encode()) is None


@pytest.mark.parametrize(("expires", "refused"), [(-1, True), (0, True), (3600, False)])
def test_a_token_is_refused_from_its_expiry_on(expires: int, refused: bool):
    token = make_token()
    entry = StaticToken(name="ci", hash=hash_token(token), expires=NOW + timedelta(seconds=expires))
    known = StaticTokens([entry])
    if refused:
        with pytest.raises(InvalidToken, match="expired"):
            known.find(token.encode())
    else:
        assert known.find(token.encode()) is not None


def test_the_shared_token_is_one_principal_beside_the_others():
    token = make_token()
    known = StaticTokens([StaticToken(name="ci", hash=hash_token(token))], Secret("s3crét"))
    shared, own = known.find("s3crét".encode()), known.find(token.encode())
    assert shared is not None
    assert own is not None
    assert (shared.name, shared.token) == ("token", "")
    assert shared.identity != own.identity


def test_without_tokens_nothing_is_known():
    assert not StaticTokens([])
    assert StaticTokens([], Secret("")).find(b"") is None
