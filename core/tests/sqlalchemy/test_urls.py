"""From a configured database to SQLAlchemy's URL."""

from pathlib import Path

from dragoman import Database, Secret
from dragoman.sqlalchemy import url_for


def test_a_server_s_url_holds_every_part_and_quotes_what_needs_it():
    database = Database(
        name="x", dialect="d", host="db.example", port=3306, database="shop", user="me@home", password=Secret("p/w?")
    )
    url = url_for(database, "mysql+asyncmy", {"charset": "utf8mb4"})
    text = url.render_as_string(hide_password=False)
    assert text == "mysql+asyncmy://me%40home:p%2Fw%3F@db.example:3306/shop?charset=utf8mb4"


def test_without_a_host_the_database_is_a_file_below_its_folder():
    database = Database(name="x", dialect="d", database="shop.db", password=Secret("x"), folder=Path("/data"))
    assert str(url_for(database, "duckdb")) == "duckdb:////data/shop.db"


def test_without_a_database_nothing_is_made_up():
    assert str(url_for(Database(name="x", dialect="d"), "sqlite")) == "sqlite://"
