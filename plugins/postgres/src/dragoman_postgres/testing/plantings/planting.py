"""A planting, the SQL that each needs first, and what several of them make."""

from __future__ import annotations

from dataclasses import dataclass

SCHEMA = """
DROP SCHEMA IF EXISTS planted CASCADE; DROP SCHEMA IF EXISTS aside CASCADE;
CREATE SCHEMA planted; CREATE SCHEMA aside;
CREATE FUNCTION planted.act() RETURNS void LANGUAGE plpgsql AS $$
BEGIN EXECUTE format('COPY (SELECT 1) TO %L', '{trace}'); END $$;
CREATE FUNCTION planted.evil(integer) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN PERFORM planted.act(); RETURN $1; END $$;
CREATE FUNCTION planted.wrong(integer) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN PERFORM planted.act(); RETURN true; END $$;
CREATE TABLE planted.base (id integer, name text);
INSERT INTO planted.base SELECT n, 'n' || n FROM generate_series(1, 20) AS n;
"""
"""Run before each planting. `trace` is the file to leave."""


@dataclass(frozen=True)
class Planting:
    """Code planted in one kind of object, met in one place."""

    vehicle: str
    place: str
    script: str
    queries: tuple[str, ...]
    since: int = 13
    until: int = 99
    everything: bool = False
    """Any query may run it, so all queries are refused."""
    undo: str = "SELECT"
    harmless: tuple[str, ...] = ()
    """Queries of the planted objects that run none of the code, and that everybody may run."""
    extension: str = ""
    """An extension that it takes, in the schema `public`."""

    def __str__(self) -> str:
        return f"{self.vehicle} in {self.place}"


# Kinds of objects that contain code: the SQL that creates them, and an expression of `id` that runs it.
ENUM = "CREATE TYPE planted.mood AS ENUM ('sad', 'glad');"


COMPARED = f"""{ENUM}
CREATE FUNCTION planted.compare(planted.mood, planted.mood) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN PERFORM planted.act(); RETURN CASE WHEN $1::text = $2::text THEN 0 ELSE 1 END; END $$;
CREATE FUNCTION planted.less(planted.mood, planted.mood) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN PERFORM planted.act(); RETURN false; END $$;
CREATE OPERATOR planted.< (leftarg = planted.mood, rightarg = planted.mood, function = planted.less);
CREATE OPERATOR planted.= (leftarg = planted.mood, rightarg = planted.mood, function = planted.less);
CREATE OPERATOR CLASS planted.moods DEFAULT FOR TYPE planted.mood USING btree AS
  OPERATOR 1 planted.<, OPERATOR 3 planted.=, FUNCTION 1 planted.compare(planted.mood, planted.mood);
"""


DOMAIN = "CREATE DOMAIN planted.checked AS integer CHECK (planted.wrong(VALUE));"


TWO = """CREATE FUNCTION planted.two(integer, integer) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS
$$ BEGIN PERFORM planted.act(); RETURN $1; END $$;"""


TOLD = "CREATE DOMAIN planted.told AS text CHECK (planted.wrong(length(VALUE)));"


def acts(answer: str) -> str:
    return f"LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM planted.act(); RETURN {answer}; END $$;"
