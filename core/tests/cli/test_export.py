"""`dragoman export`: files of any size from the command line."""

from __future__ import annotations

import json

import pyarrow.parquet as pq

MANY = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000) SELECT i FROM n"


def test_a_whole_answer_is_written(dragoman, configured, folder):
    outcome = dragoman("export", "shop", MANY, "out.parquet")
    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err.startswith("30000 rows, ")
    assert pq.read_table(folder / "out.parquet").column("i").to_pylist() == list(range(1, 30001))
    assert [path.name for path in folder.glob("*out*")] == ["out.parquet"]


def test_parameters_are_bound(dragoman, configured, folder):
    assert dragoman("export", "shop", "SELECT ? AS v", "v.jsonl", "--param", '"=1"').code == 0
    assert json.loads((folder / "v.jsonl").read_text()) == {"v": "=1"}


def test_a_file_is_not_replaced_unasked(dragoman, configured, folder):
    (folder / "out.csv").write_text("precious")
    outcome = dragoman("export", "shop", "SELECT 1", "out.csv")
    assert (outcome.code, "--force" in outcome.err) == (1, True)
    assert (folder / "out.csv").read_text() == "precious"
    assert dragoman("export", "shop", "SELECT 1 AS a", "out.csv", "--force").code == 0
    assert (folder / "out.csv").read_bytes() == b"a\r\n1\r\n"


def test_a_refused_query_leaves_no_file(dragoman, configured, folder):
    assert dragoman("export", "shop", "DELETE FROM orders", "out.csv").code == 1
    assert not list(folder.glob("*out*"))


def test_an_unknown_suffix_names_the_formats(dragoman, configured):
    outcome = dragoman("export", "shop", "SELECT 1", "out.parqet")
    assert "Did you mean parquet?" in outcome.err
