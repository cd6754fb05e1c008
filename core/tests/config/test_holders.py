"""Roles whose holders cannot exist are warned of, with the nearest name."""

from pathlib import Path

import pytest
from dragoman.config import load

TOKEN = f"""
[server]
transport = "http"
[[server.tokens]]
name = "ann"
hash = "sha256:{"0" * 64}"
[[server.tokens]]
name = "reports"
hash = "sha256:{"1" * 64}"
"""
AUTH = """
[server.auth]
issuer = "https://idp.example/realms/team"
audience = "https://gw.example/mcp"
jwks_url = "https://idp.example/jwks"
"""
PROXY = TOKEN.replace('"http"', '"http"\ntrusted_proxies = ["127.0.0.1"]')


def warnings(folder: Path, server: str, holders: str) -> tuple[str, ...]:
    role = f'[roles.analyst]\n{holders}\n[[roles.analyst.grants]]\ndatabase = "shop"\ntables = ["*"]\n'
    text = f'{server}\n[databases.shop]\nurl = "sqlite:///shop.db"\n{role}'
    (folder / "dragoman.toml").write_text(text)
    return load(folder / "dragoman.toml", environ={}, folder=folder).warnings


@pytest.mark.parametrize(
    ("server", "holders", "words"),
    [
        (
            TOKEN,
            'principals = ["ann"]',
            "ann is a static token, which has no subject. List it in roles.analyst.tokens.",
        ),
        (TOKEN + AUTH, 'principals = ["ann"]', "ann is a static token"),
        (TOKEN, 'principals = ["report"]', "none of them is report. Did you mean reports?"),
        (TOKEN, 'tokens = ["report"]', "no static token is called report. Did you mean reports?"),
        (TOKEN, 'tokens = ["zzz"]', "no static token is called zzz."),
        (AUTH, 'principals = ["https://idp.example/realms/teams#u1"]', "Did you mean https://idp.example/realms/team?"),
    ],
)
def test_a_holder_that_nobody_can_be_is_warned_of(tmp_path: Path, server: str, holders: str, words: str) -> None:
    (told,) = warnings(tmp_path, server, holders)
    assert told.startswith("roles.analyst.")
    assert words in told


@pytest.mark.parametrize(
    ("server", "holders"),
    [
        (TOKEN, 'tokens = ["ann", "*"]'),
        (TOKEN, 'principals = ["*"]'),
        (TOKEN + AUTH, 'principals = ["u1", "https://idp.example/realms/team#u1"]'),
        (PROXY, 'principals = ["bob", "proxy#bob"]'),
        (TOKEN.replace('"http"', '"stdio"'), 'principals = ["bob", "local"]'),
        ("", 'principals = ["bob"]'),
    ],
)
def test_a_holder_that_somebody_may_be_is_not(tmp_path: Path, server: str, holders: str) -> None:
    assert warnings(tmp_path, server, holders) == ()
