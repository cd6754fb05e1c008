import string
from pathlib import Path
from typing import Any

import pytest
from dragoman.config import parse_named, parse_url
from dragoman.config.showing import mask_url
from dragoman.errors import ConfigurationError
from dragoman.model import Secret
from hypothesis import example, given
from hypothesis import strategies as st

URLS: list[tuple[str, dict[str, Any]]] = [
    ("sqlite:///shop.db", {"name": "shop", "dialect": "sqlite", "host": None, "database": "shop.db"}),
    ("sqlite:////abs/my%20shop.db", {"name": "my_shop", "database": "/abs/my shop.db"}),
    ("sqlite:///data/Shop.Prod.sqlite", {"name": "shop_prod", "database": "data/Shop.Prod.sqlite"}),
    ("SQLite:///x.db", {"dialect": "sqlite"}),
    ("sqlite://", {"name": "sqlite", "database": None}),
    ("postgresql://reader@db/shop", {"name": "shop", "user": "reader", "host": "db", "port": None, "password": None}),
    ("postgresql://u:p%40ss%2Fw@db:6000/a", {"password": Secret("p@ss/w"), "port": 6000, "database": "a"}),
    ("postgresql://u:p@ss@db/a", {"password": Secret("p@ss"), "host": "db"}),
    ("postgresql://u:@db/a", {"user": "u", "password": None}),
    ("postgresql://[::1]:5432/a", {"host": "::1", "port": 5432}),
    ("postgresql://[fe80::1%25eth0]/a", {"host": "fe80::1%eth0", "port": None}),
    ("postgresql://h1:1,h2:2/a", {"host": "h1:1,h2:2", "port": None, "name": "a"}),
    ("postgresql://%2Frun%2Fpg/a", {"host": "/run/pg"}),
    ("postgresql://db", {"name": "postgresql", "dialect": "postgres", "database": None}),
    ("postgres://db", {"name": "postgres", "dialect": "postgres"}),
    ("postgresql:///shop?host=/run/pg&user=u&password=p&port=7", {"host": "/run/pg", "user": "u", "port": 7}),
    ("postgresql:///shop?host=/run/pg&password=p", {"password": Secret("p"), "options": {}, "name": "shop"}),
    ("trino://me@host:443/Hive/default", {"name": "hive", "database": "Hive/default"}),
    ("x://h/d?a=1&b=x%26y&c=&d=a+b", {"options": {"a": "1", "b": "x&y", "c": "", "d": "a+b"}}),
    ("x://h/Größe-2", {"name": "gr__e_2"}),
    ("shop.db", {"name": "shop", "dialect": "sqlite", "host": None, "database": "shop.db"}),
    ("./my shop.db", {"name": "my_shop", "dialect": "sqlite", "database": "./my shop.db"}),
    ("/abs/100%?.sqlite3", {"name": "100__", "dialect": "sqlite", "database": "/abs/100%?.sqlite3"}),
    ("data/Lake.duckdb", {"name": "lake", "dialect": "duckdb", "database": "data/Lake.duckdb"}),
    ("~/x.db", {"name": "x", "dialect": "sqlite", "database": str(Path.home() / "x.db")}),
    ("sqlite:///~/x.db", {"name": "x", "dialect": "sqlite", "database": str(Path.home() / "x.db")}),
    ("x://h/d%40home", {"database": "d@home"}),
    ("sqlite:///me@home/shop.db", {"database": "me@home/shop.db"}),
    ("x://h/d?mail=me@home", {"options": {"mail": "me@home"}}),
]


@pytest.mark.parametrize(("text", "expected"), URLS, ids=[text for text, _ in URLS])
def test_a_url_becomes_its_parts(text: str, expected: dict[str, Any]) -> None:
    database = parse_url(text)
    assert {key: getattr(database, key) for key in expected} == expected
    assert database.url == Secret(text)


def test_a_name_may_stand_before_the_url() -> None:
    assert parse_named("crm=sqlite:///shop.db").name == "crm"
    assert parse_named("sqlite:///shop.db?mode=ro").name == "shop"


def test_a_relative_file_is_relative_to_the_folder_given() -> None:
    assert parse_url("sqlite:///shop.db", folder=Path("/data")).folder == Path("/data")
    assert parse_url("sqlite:///shop.db").folder == Path.cwd()


BAD = [
    ("shop", "not a database URL"),
    ("postgresql+asyncpg://h/d", "not a driver"),
    ("postgresql://u:hunter2@h:port/d", "port"),
    ("postgresql://u:hunter2@h:0/d", "port"),
    ("postgresql://u:hunter2@h:99999/d", "port"),
    ("postgresql://u:hunter2/x@h/d", "percent-encoded"),
    ("postgresql://u:hunter2@[::1/d", "host"),
    ("postgresql://u:p@hunter2/x@h/d", "percent-encoded"),
    ("postgresql://u:p@ss/hunter2:rd@h/d", "percent-encoded"),
    ("postgresql://u:12/hunter2@h/d", "percent-encoded"),
    ("postgresql://u:12?hunter2@h/d", "percent-encoded"),
    ("postgresql://u:12?hunter2=x@h/d", "percent-encoded"),
    ("postgresql://u:12?a=1&hunter2@h/d", "percent-encoded"),
    ("postgresql://u:/hunter2@h/d", "percent-encoded"),
    ("postgresql:///u:hunter2@h/d", "slashes"),
    ("Shop=sqlite:///shop.db", "named"),
    ("-a=sqlite:///shop.db", "named"),
    ("=sqlite:///shop.db", "named"),
]


@pytest.mark.parametrize(("text", "message"), BAD, ids=[text for text, _ in BAD])
def test_a_wrong_url_is_refused_with_a_remedy_and_without_its_password(text: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message) as caught:
        parse_named(text)
    assert caught.value.suggestion
    assert "hunter2" not in f"{caught.value.message} {caught.value.suggestion}"


def test_a_driver_in_the_scheme_is_answered_with_the_url_to_write() -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_url("postgresql+asyncpg://h/d")
    assert "postgresql://" in caught.value.suggestion


MASKED = [
    ("postgresql://u:hunter2@h/d", "postgresql://u:***@h/d"),
    ("postgresql://u:hunt@er2@h/d?sslmode=x", "postgresql://u:***@h/d?sslmode=x"),
    ("postgresql://u@h/d", "postgresql://u@h/d"),
    ("x:///d?password=hunter2&api_key=hunter2&mode=ro", "x:///d?password=***&api_key=***&mode=ro"),
]


@pytest.mark.parametrize(("text", "expected"), MASKED)
def test_a_masked_url_keeps_everything_but_its_secrets(text: str, expected: str) -> None:
    assert mask_url(text) == expected


@example(start="", middle="/7?7=", end="/")
@example(start="27", middle="/7?7=", end="x")
@example(start="", middle="@/7?7=", end="/")
@example(start="x", middle="@a/7?7=", end="x")
@given(start=st.sampled_from(["", "27", "x"]), middle=st.text("aZ7/@:?&=#% ", max_size=8), end=st.sampled_from("/?@x"))
def test_an_unencoded_password_is_read_whole_or_refused_and_never_repeated(start: str, middle: str, end: str) -> None:
    try:
        database = parse_url(f"x://u:{start}{middle}hunter2{end}@db.example/shop")
        told = f"{database.name} {database.host} {database.database} {database.options}"
    except ConfigurationError as error:
        told = f"{error.message} {error.suggestion} {error.context}"
    assert "hunter2" not in told


@given(password=st.text(string.printable, min_size=1))
def test_any_percent_encoded_password_survives(password: str) -> None:
    from urllib.parse import quote

    database = parse_url(f"x://u:{quote(password, safe='')}@h:1/d")
    assert database.password == Secret(password)
    assert (database.host, database.port, database.database) == ("h", 1, "d")
