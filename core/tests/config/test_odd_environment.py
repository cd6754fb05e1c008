"""Whatever the environment and URLs hold, loading ends in a configuration or in a remedy, and tells no secret."""

import json
import tempfile
from pathlib import Path
from urllib.parse import quote

import pytest
from dragoman.config import load, parse_url, show
from dragoman.config.showing import mask_url
from dragoman.errors import ConfigurationError
from dragoman.model import Secret
from hypothesis import example, given
from hypothesis import strategies as st

MARK = "hunter2zq"
"""Stands in every secret, and in nothing else."""
SECTIONS = "databases server defaults results audit model policies roles default_database config databse my".split()
KEYS = """url password dialect host port database schema schemas user options name token tokens timeout max_rows
max_bytes allow_functions description keys auth transport allowed_hosts trusted_proxies tools folder key api_key model
pool_size x shop _ 0 a.b [0]""".split()
SECRET_KEYS = frozenset({"url", "password", "token", "tokens", "key", "api_key"})
ODD = st.one_of(
    st.sampled_from(
        """1 -1 0 1e999 NaN true False null [] {} [[]] {"a":{"b":[1]}} ["x",1] "" ' " ${HOME} ${NOT_THERE} ${ ${X:-}
        ${file:/none} file:///etc/none enc:xyz %% \\ , ,, a,b = -- [1 {"a" ~ / . .. \u202e \x1b[31m é 𝄞""".split()
    ),
    st.text(max_size=12),
    st.just("9" * 5_000),
    st.just("[" * 2_000),
)
SECRETS = st.sampled_from(
    [
        MARK,
        f"${{{MARK}",
        f"${{X:-{MARK}}}",
        f'{{"{MARK}": 1}}',
        f'["{MARK}"]',
        f"postgresql://u:{MARK}@h/d",
        f"postgresql://u:{MARK}@h:port/d",
        f"postgresql://u:{MARK}/x@[::1/d",
        f"nothing://u:{MARK}@h/d?sslmode=%zz",
        f"x://h/d?password={MARK}&port=x",
    ]
)
NAMES = st.lists(st.sampled_from(SECTIONS + KEYS), min_size=1, max_size=5).map("__".join)


@st.composite
def environments(draw: st.DrawFn) -> dict[str, str]:
    """Return variables with our prefix: sections, keys, odd joins and values; secrets only where they belong."""
    found: dict[str, str] = {}
    for name in draw(st.lists(NAMES, min_size=1, max_size=5)):
        written = draw(st.sampled_from((name, name.upper(), f"{name}__", f"__{name}", name.replace("__", "_"))))
        is_secret = name.rpartition("__")[2] in SECRET_KEYS and written.lower().rpartition("__")[2] in SECRET_KEYS
        found[f"DRAGOMAN_{written}"] = draw(SECRETS if is_secret else ODD).replace("\0", "")
    return found


@example(environ={}, dotenv={"DRAGOMAN_policies__databases": "[" * 5_000})
@given(environ=environments(), dotenv=environments())
def test_whatever_variables_hold_a_command_ends_in_words_and_tells_no_secret(
    environ: dict[str, str], dotenv: dict[str, str]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        lines = "".join(f"{name}={json.dumps(value)}\n" for name, value in dotenv.items() if name.isidentifier())
        Path(folder, ".env").write_text(lines, encoding="utf-8", errors="replace")
        try:
            configuration = load(folder=Path(folder), environ={"HOME": folder, **environ})
            told = f"{configuration!r} {configuration.warnings} {show(configuration)}"
        except ConfigurationError as error:
            told = f"{error.message} {error.suggestion} {error.context}"
    assert MARK not in told


SCHEMES = ("postgresql", "postgres", "trino", "sqlite", "duckdb", "mysql")
PASSWORDS = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")) | st.sampled_from("/@%?#&=:+ []{}'\"\\"), max_size=12
)
HOSTS = st.sampled_from(
    [
        ("db.example", "db.example"),
        ("[::1]", "::1"),
        ("[fe80::1%25eth0]", "fe80::1%eth0"),
        ("%2Frun%2Fpg", "/run/pg"),
        ("10.0.0.1", "10.0.0.1"),
    ]
)
OPTIONS = st.dictionaries(
    st.sampled_from(["sslmode", "application_name", "x", "connect_timeout"]), st.text(max_size=6), max_size=3
)


def plain(text: str) -> str:
    return quote(text, safe="")


@given(
    scheme=st.sampled_from(SCHEMES),
    user=st.text("aZ@/:% é", min_size=1, max_size=6),
    password=PASSWORDS,
    host=HOSTS,
    port=st.none() | st.integers(1, 65_535),
    database=st.text("aZ-_ é%?/#@", min_size=1, max_size=8).filter(lambda text: text.strip("/") == text),
    options=OPTIONS,
)
def test_an_encoded_url_of_any_dialect_is_read_as_it_was_meant(
    scheme: str,
    user: str,
    password: str,
    host: tuple[str, str],
    port: int | None,
    database: str,
    options: dict[str, str],
) -> None:
    secret = MARK + password
    query = "&".join(f"{plain(name)}={plain(value)}" for name, value in options.items())
    where = host[0] + (f":{port}" if port else "")
    text = f"{scheme}://{plain(user)}:{plain(secret)}@{where}/{plain(database)}" + (f"?{query}" if query else "")
    read = parse_url(text)
    assert (read.user, read.password, read.host, read.port) == (user, Secret(secret), host[1], port)
    assert (read.database, read.options) == (database, options)
    assert MARK not in f"{read!r} {read} {mask_url(text)} {read.name}"


@pytest.mark.parametrize("scheme", SCHEMES)
@given(tail=st.text("aZ/@:?&=#%[]. ", max_size=14))
def test_a_url_of_any_dialect_is_read_or_refused_and_its_password_not_repeated(scheme: str, tail: str) -> None:
    text = f"{scheme}://u:{MARK}{tail}@db.example/shop?sslmode=require"
    try:
        read = parse_url(text)
        told = f"{read!r} {read.name} {read.host} {read.database} {read.options} {read.user}"
    except ConfigurationError as error:
        told = f"{error.message} {error.suggestion} {error.context}"
    assert MARK not in told
