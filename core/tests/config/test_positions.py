from pathlib import Path

import pytest
from dragoman.config.positions import line_of, read_lines

TOML = '''# a comment
default_database = "shop"
[databases.shop]
description = """
port = 3
[databases.fake]
"""
url = "sqlite:///shop.db" # the file
options.mode = "ro"
[[databases.shop.keys]]
table = "orders"
[[databases.shop.keys]]
table = "items"
[databases."my-shop"]
port = 7
'''
YAML = """databases:
  shop:
    url: sqlite:///shop.db
    keys:
      - table: orders
      - table: items
"""


@pytest.mark.parametrize(
    ("key", "line"),
    [
        ("default_database", 2),
        ("databases.shop.url", 8),
        ("databases.shop.port", 3),
        ("databases.shop.options.mode", 9),
        ("databases.shop.keys", 10),
        ("databases.shop.keys.1.table", 13),
        ("databases.my-shop.port", 15),
        ("server.port", None),
    ],
)
def test_a_key_of_a_toml_file_is_told_by_its_line_or_its_table_s(tmp_path: Path, key: str, line: int | None) -> None:
    (tmp_path / "a.toml").write_text(TOML)
    assert line_of(read_lines(tmp_path / "a.toml"), key.split(".")) == line


@pytest.mark.parametrize(("key", "line"), [("databases.shop.url", 3), ("databases.shop.keys.1.table", 6)])
def test_a_key_of_a_yaml_file_is_told_by_its_line(tmp_path: Path, key: str, line: int) -> None:
    (tmp_path / "a.yaml").write_text(YAML)
    assert line_of(read_lines(tmp_path / "a.yaml"), key.split(".")) == line


def test_a_file_that_is_gone_tells_no_line(tmp_path: Path) -> None:
    assert line_of(read_lines(tmp_path / "a.toml"), ["server"]) is None
