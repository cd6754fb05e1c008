"""Of what the lists allow, nothing runs on beyond its deadline but what docs/security.md says."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from dragoman_postgres.testing import installations

# What searches a text in a text, reads one by a long format, compares each element with each, makes millions of points,
# or works on numerics of 100,000 digits.
SAID = frozenset(
    """
    position strpos to_timestamp to_date replace split_part string_to_array string_to_table
    @> <@ && ?| ?& - arraycontains arraycontained arrayoverlap jsonb_contains jsonb_contained jsonb_exists_any
    jsonb_exists_all jsonb_delete path_distance <-> ts_rank ts_rank_cd word_similarity strict_word_similarity
    <% %> <<% %>> <<-> <->> <<<-> <->>> st_generatepoints
    """.split()
)
# Pass with arguments that are short only.
BOUND = frozenset(
    """btrim ltrim rtrim translate normalize is_normalized xpath xpath_exists xmlexists
    st_asgeojson st_buffer st_frechetdistance st_geohash st_hausdorffdistance st_offsetcurve
    st_transform st_transformpipeline
    to_tsquery plainto_tsquery phraseto_tsquery websearch_to_tsquery tsquery ts_rewrite ts_match_tt
    ts_headline""".split()
)
# Types whose values make work for whatever takes them.
LABORIOUS = ("numeric", "ltxtquery", "jsonpath")


def _script() -> ModuleType:
    path = Path(__file__).parents[1] / "scripts" / "overshoot.py"
    spec = importlib.util.spec_from_file_location("overshoot", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _is_said(signature: str) -> bool:
    words = {signature.partition("(")[0], *signature.split()}
    return bool(words & (SAID | BOUND)) or signature == "text @@ text" or any(kind in signature for kind in LABORIOUS)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("major", "one_in"),
    [
        pytest.param(None, 60, marks=pytest.mark.full),
        *(pytest.param(major, 1, marks=pytest.mark.nightly) for major in installations()),
    ],
)
async def test_what_cannot_be_ended_is_said(major: int | None, one_in: int):
    found = await _script().examine(major, one_in)
    assert {what: call for what, call in found.items() if not _is_said(what)} == {}


@pytest.mark.full
async def test_the_script_sees_what_cannot_be_ended():
    script = _script()
    server = script.Server.start()
    try:
        connection = await script.connected(server, await server.create())
        slow = "position('b' || repeat('a', 50000) in repeat('a', 200000))"
        assert await script.timed(connection, slow) > script.TIMEOUT + script.LATE
        assert await script.timed(connection, "pg_sleep(1)") < script.LATE
        await connection.close()
    finally:
        server.stop()
