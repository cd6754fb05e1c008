"""The catalog queries: seven and one for names, whatever the number of relations. They run on PostgreSQL 13 to 18.

Every value is a text, a number, a boolean, or an array of text or OIDs, which the driver decodes without asking. The
queries avoid columns that newer servers added: those columns hold defaults on older servers, or a function returns
their values.

The search path stays the caller's, so that types and expressions are spelled as callers may write them. A user who may
create functions in one of its schemas could intercept our calls by a better match of types (CVE-2018-1058). So
functions and operators get exactly the types of the system's own, and those that cannot are qualified.

The functions that print expressions (`pg_get_expr`, ...) wait for a session that holds a relation exclusively, which
may take hours (VACUUM FULL, a migration). They are not called for such relations, and their results are left out.
"""

from __future__ import annotations

from dragoman.model import UNKNOWN_EXPRESSION as UNKNOWN

VERSION = "SHOW server_version"

SETTINGS = "SET LOCAL jit = off; SET LOCAL lock_timeout = '1s'"
"""Settings for these queries: JIT costs more than it saves, and a lock taken meanwhile must not delay us."""

_LOCKED = """(
  SELECT relation FROM pg_locks WHERE locktype = 'relation' AND mode = 'AccessExclusiveLock' AND pid <> pg_backend_pid()
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))"""
_IS_SYSTEM = "n.nspname::text ~ '^pg_' OR n.nspname = 'information_schema'"
_IS_SHOWN = "has_schema_privilege(n.oid, 'USAGE'::text) AND n.nspname::text !~ '^pg_(toast|temp_)'"

_ARE_WANTED = f"""c.relkind IN ('r', 'v', 'm', 'f', 'p') AND {_IS_SHOWN}
  AND ($1::text[] IS NULL OR n.nspname = ANY($1)) AND ($2::text[] IS NULL OR c.relname = ANY($2))
  AND (has_table_privilege(c.oid, 'SELECT'::text) OR has_any_column_privilege(c.oid, 'SELECT'::text))"""

SCHEMAS = f"""
SELECT n.nspname::text, pg_get_userbyid(n.nspowner)::text, about.description, {_IS_SYSTEM},
  pg_catalog.array_position(current_schemas(false), n.nspname) - 1
FROM pg_namespace AS n LEFT JOIN pg_description AS about
  ON about.objoid = n.oid AND about.classoid = 'pg_namespace'::regclass::oid AND about.objsubid = 0
WHERE {_IS_SHOWN} ORDER BY n.nspname
"""

_OWN = """(WITH RECURSIVE own (oid) AS (
  SELECT oid FROM pg_roles WHERE rolname = current_user
  UNION SELECT roleid FROM pg_auth_members JOIN own ON member = own.oid) TABLE own)"""
"""The session's role, and those that it is a member of, directly or through others."""
_MARKED = (
    ("pg_class", "oid", "relkind IN ('r', 'v', 'm', 'f', 'p', 'i', 'I')"),
    ("pg_attribute", "attrelid, attnum", "attnum > 0"),
    ("pg_constraint", "oid", "true"),
    ("pg_index", "indexrelid", "true"),
    ("pg_description", "objoid, classoid, objsubid", "true"),
    ("pg_enum", "oid", "true"),
    ("pg_inherits", "inhrelid, inhseqno", "true"),
    ("pg_rewrite", "ev_class, rulename", "true"),
    ("pg_auth_members", "member, xmin::text", f"member IN {_OWN}"),
)
"""Catalogs, an order of their rows, and a condition on the rows.

Rows of the system itself (OIDs below 16384) do not count.

The order is an index's, so that newer servers need not sort.
"""

_MARK = "md5(string_agg({key}::text || ':'::text || xmin::text, ','::text ORDER BY {order})) FROM pg_catalog.{name}"


def _mark(name: str, order: str, wanted: str) -> str:
    key = order.partition(",")[0]
    return f"(SELECT {_MARK.format(key=key, order=order, name=name)} WHERE {key} >= 16384::oid AND {wanted})"


_SCHEMAS_MARK = f"(SELECT {_MARK.format(key='oid', order='oid', name='pg_namespace')})"
"""Of all schemas: `public` belongs to the system, and a role's rights on it change as on any other."""
STARTED = "date_part('epoch'::text, pg_postmaster_start_time())::text"
"""Tells servers apart. Two that one script made give the same numbers to what differs, and so does a standby that was
promoted before the last changes had reached it.
"""


def fingerprint(cluster: str | None) -> str:
    """Return the query of the fingerprint. `cluster`: the session's; None: it may change, or is not told.

    The standbys of one cluster count as one server: each connection may reach another of them.
    """
    server = STARTED if cluster is None else f"CASE WHEN pg_is_in_recovery() THEN '{cluster}'::text ELSE {STARTED} END"
    marks = ", ".join(_mark(*each) for each in _MARKED)
    session = "current_user::text, current_schemas(false)::text"
    return f"SELECT md5(pg_catalog.concat_ws(','::text, {_SCHEMAS_MARK}, {marks}, {session}, {server}))"


NAMES = f"""
SELECT n.nspname::text, c.relkind::text, {_IS_SYSTEM}, parent.home, parent.name,
  pg_catalog.array_agg(c.relname::text)
FROM pg_namespace AS n JOIN pg_class AS c ON c.relnamespace = n.oid LEFT JOIN (
  SELECT inhrelid, min(home.nspname::text) AS home, min(own.relname::text) AS name
  FROM pg_inherits JOIN pg_class AS own ON own.oid = inhparent JOIN pg_namespace AS home ON home.oid = own.relnamespace
  GROUP BY inhrelid HAVING count(*) = 1) AS parent ON parent.inhrelid = c.oid
WHERE {_ARE_WANTED} GROUP BY 1, 2, 3, 4, 5
"""
"""$1: schemas, $2: names; NULL does not restrict. Returns names by schema, kind and parent relations."""

RELATIONS = f"""
SELECT c.oid, n.nspname::text, c.relname::text, c.relkind::text, pg_get_userbyid(c.relowner)::text, about.description,
  {_IS_SYSTEM}, has_table_privilege(c.oid, 'SELECT'::text), c.oid IN {_LOCKED}
FROM pg_namespace AS n JOIN pg_class AS c ON c.relnamespace = n.oid LEFT JOIN pg_description AS about
  ON about.objoid = c.oid AND about.classoid = 'pg_class'::regclass::oid AND about.objsubid = 0
WHERE {_ARE_WANTED}
"""
"""$1: schemas, $2: names; NULL does not restrict.

The last columns: whether every column may be read, and whether the relation is held exclusively.
"""

COLUMNS = f"""
WITH RECURSIVE locked AS {_LOCKED},
  part (whole, oid) AS (
    SELECT inhparent, inhrelid FROM pg_inherits WHERE inhparent = ANY($1::oid[])
    UNION SELECT part.whole, below.inhrelid FROM part JOIN pg_inherits AS below ON below.inhparent = part.oid),
  computed AS (
    SELECT part.whole, part.oid, a.attname, part.oid IN (TABLE locked) AS is_locked,
      CASE WHEN part.oid NOT IN (TABLE locked) THEN pg_get_expr(d.adbin, d.adrelid, true) END AS expression,
      CASE WHEN part.whole NOT IN (TABLE locked) THEN pg_get_expr(own.adbin, own.adrelid, true) END AS of_whole
    FROM part JOIN pg_attribute AS a ON a.attrelid = part.oid AND a.attgenerated = 's' AND NOT a.attisdropped
    JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    JOIN pg_attribute AS b ON b.attrelid = part.whole AND b.attname = a.attname AND b.attnum > 0
    LEFT JOIN pg_attrdef AS own ON own.adrelid = b.attrelid AND own.adnum = b.attnum AND b.attgenerated <> ''),
  otherwise AS (
    SELECT whole, attname, pg_catalog.string_agg(DISTINCT expression, ', '::text) AS expressions,
      pg_catalog.bool_or(is_locked OR EXISTS (
        SELECT FROM pg_attribute AS more
        WHERE more.attrelid = computed.oid AND more.attnum > 0 AND NOT more.attisdropped
          AND NOT EXISTS (
            SELECT FROM pg_attribute AS same WHERE same.attrelid = whole AND same.attname = more.attname)
      )) AS unknown
    FROM computed WHERE is_locked OR expression IS DISTINCT FROM of_whole GROUP BY whole, attname)
SELECT a.attrelid, a.attnum, a.attname::text, a.atttypid, a.atttypmod, a.attnotnull,
  a.attgenerated <> '' OR otherwise.attname IS NOT NULL, a.attidentity::text, about.description,
  CASE WHEN otherwise.unknown OR a.attgenerated <> '' AND a.attrelid IN (TABLE locked) THEN '{UNKNOWN}'
    WHEN a.attrelid NOT IN (TABLE locked) THEN nullif(pg_catalog.concat_ws(', '::text,
      CASE WHEN a.attgenerated <> '' OR otherwise.attname IS NULL THEN pg_get_expr(d.adbin, d.adrelid, true) END,
      otherwise.expressions), ''::text)
    ELSE otherwise.expressions END
FROM pg_catalog.unnest($1::oid[]) AS relation(oid)
JOIN pg_attribute AS a ON a.attrelid = relation.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN otherwise ON otherwise.whole = a.attrelid AND otherwise.attname = a.attname
LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
LEFT JOIN pg_description AS about
  ON about.objoid = a.attrelid AND about.classoid = 'pg_class'::regclass::oid AND about.objsubid = a.attnum
WHERE a.attrelid <> ALL($2::oid[]) OR has_column_privilege(a.attrelid, a.attnum, 'SELECT'::text)
ORDER BY a.attrelid, a.attnum
"""
"""$1: relations, $2: those of which not every column may be read.

The rows of tables that inherit from a relation are rows of it. So the expression of a column is followed by theirs,
where a stored one differs. It is unknown where one of them is held exclusively, or may use a column that only it has.
"""

TYPES = """
SELECT used.type, used.modifier::integer, format_type(used.type, used.modifier::integer), own.typnotnull,
  array(SELECT label.enumlabel::text FROM pg_enum AS label
        WHERE label.enumtypid IN (element.oid, element.typbasetype) ORDER BY label.enumsortorder),
  array(SELECT pg_get_constraintdef(con.oid, true) FROM pg_constraint AS con
        WHERE con.contypid = element.oid AND con.contype = 'c' ORDER BY con.conname),
  EXISTS (
    WITH RECURSIVE held (type) AS (
      SELECT used.type
      UNION
      SELECT part.type FROM held JOIN pg_type AS t ON t.oid = held.type, LATERAL (
        SELECT t.typbasetype UNION ALL SELECT t.typelem UNION ALL
        SELECT a.atttypid FROM pg_attribute AS a WHERE a.attrelid = t.typrelid AND a.attnum > 0) AS part(type)
      WHERE part.type <> '0'::oid)
    SELECT FROM held JOIN pg_type AS t ON t.oid = held.type JOIN pg_namespace AS n ON n.oid = t.typnamespace
    WHERE n.nspname::text = 'pg_catalog'::text AND t.typname::text ~ '^reg'::text
      AND t.typname::text <> ALL ('{regconfig,regdictionary}'::text[]))
FROM ROWS FROM (pg_catalog.unnest($1::oid[]), pg_catalog.unnest($2::text[])) AS used(type, modifier)
JOIN pg_type AS own ON own.oid = used.type
JOIN pg_type AS element
  ON element.oid = CASE WHEN own.typcategory = 'A' AND own.typelem <> '0'::oid THEN own.typelem ELSE own.oid END
"""
"""$1, $2: the types and modifiers of columns.

Returns the spelling, whether NULL is excluded, labels, checks, and whether values hold names of objects.

For an array, labels (of an enum) and checks (of a domain) are those of its elements.
"""

CONSTRAINTS = f"""
SELECT con.conrelid, con.contype::text, con.conname::text, con.conkey::text[],
  CASE WHEN con.contype IN ('c', 'x') OR (con.conrelid NOT IN {_LOCKED}
      AND (con.condeferrable OR con.confmatchtype = 'f' OR NOT con.convalidated))
    THEN pg_get_constraintdef(con.oid, true) END,
  con.conrelid NOT IN (SELECT inhparent FROM pg_inherits)
    OR con.conrelid IN (SELECT partrelid FROM pg_partitioned_table),
  target_schema.nspname::text, target.relname::text, CASE WHEN con.contype = 'f' THEN array(
    SELECT a.attname::text FROM pg_catalog.unnest(con.confkey) WITH ORDINALITY AS key(number, place)
    JOIN pg_attribute AS a ON a.attrelid = con.confrelid AND a.attnum = key.number ORDER BY key.place) END,
  con.confupdtype::text, con.confdeltype::text
FROM pg_catalog.unnest($1::oid[]) AS relation(oid)
JOIN pg_constraint AS con ON con.conrelid = relation.oid
LEFT JOIN pg_class AS target ON target.oid = con.confrelid
LEFT JOIN pg_namespace AS target_schema ON target_schema.oid = target.relnamespace
WHERE con.contype IN ('p', 'u')
  OR (con.contype IN ('c', 'x') AND con.conrelid NOT IN {_LOCKED})
  OR (con.contype = 'n' AND NOT con.convalidated)
  OR (con.contype = 'f' AND con.conparentid = '0'::oid
      AND (to_jsonb(con) ->> 'conperiod'::text) IS DISTINCT FROM 'true'::text
      AND has_schema_privilege(target_schema.oid, 'USAGE'::text)
      AND (has_table_privilege(target.oid, 'SELECT'::text) OR has_any_column_privilege(target.oid, 'SELECT'::text)))
ORDER BY con.conrelid, con.contype <> 'p', con.conname
"""
"""$1: relations.

Leaves out the foreign keys that partitions inherit, which repeat their parent's once per partition, and those with
PERIOD (from version 18 on): their rows do not join by equal columns.
"""

INDEXES = f"""
SELECT i.indrelid, c.relname::text, i.indisunique, i.indisprimary, method.amname::text,
  (i.indkey::smallint[])[0:i.indnkeyatts - 1]::text[],
  CASE WHEN i.indexprs IS NOT NULL THEN array(
    SELECT pg_get_indexdef(i.indexrelid, part, true)
    FROM generate_series(1, i.indnkeyatts::integer) AS part ORDER BY part) END,
  CASE WHEN i.indpred IS NOT NULL THEN pg_get_expr(i.indpred, i.indrelid, true) END,
  (i.indkey::smallint[])[i.indnkeyatts:i.indnatts - 1]::text[]
FROM pg_catalog.unnest($1::oid[]) AS relation(oid)
JOIN pg_index AS i ON i.indrelid = relation.oid AND i.indislive AND i.indisvalid
JOIN pg_class AS c ON c.oid = i.indexrelid
JOIN pg_am AS method ON method.oid = c.relam
WHERE (i.indexprs IS NULL AND i.indpred IS NULL) OR i.indrelid NOT IN {_LOCKED}
ORDER BY i.indrelid, NOT i.indisprimary, c.relname
"""
"""$1: relations. Returns the key parts of each index, without included columns."""

STORAGE = f"""
WITH RECURSIVE part (root, oid, kind) AS (
  SELECT c.oid, c.oid, c.relkind
  FROM pg_catalog.unnest($1::oid[]) AS relation(oid) JOIN pg_class AS c ON c.oid = relation.oid
  WHERE c.relkind IN ('r', 'm', 'f', 'p')
  UNION ALL
  SELECT part.root, c.oid, c.relkind
  FROM part JOIN pg_inherits AS child ON child.inhparent = part.oid JOIN pg_class AS c ON c.oid = child.inhrelid
  WHERE part.kind = 'p'
), leaf AS MATERIALIZED (
  SELECT part.root, c.oid, c.relkind, c.reltuples, c.relpages, c.reltoastrelid
  FROM part JOIN pg_class AS c ON c.oid = part.oid WHERE part.kind <> 'p'
), looked_at AS MATERIALIZED (
  SELECT root, oid FROM leaf WHERE relpages = 0 AND relkind <> 'f' AND oid NOT IN {_LOCKED}
    AND (SELECT count(*) FROM leaf WHERE relpages = 0) <= 200
), file AS (
  SELECT root, oid FROM leaf WHERE relpages > 0
  UNION ALL SELECT root, reltoastrelid FROM leaf WHERE relpages > 0 AND reltoastrelid <> '0'::oid
  UNION ALL SELECT root, indexrelid FROM leaf JOIN pg_index ON indrelid = leaf.oid WHERE relpages > 0
), told (root, rows, bytes) AS (
  SELECT root, CASE WHEN reltuples > 0::real OR relpages > 0 THEN reltuples::bigint
    ELSE nullif(pg_stat_get_live_tuples(oid), 0::bigint) END, NULL::bigint
  FROM leaf
  UNION ALL
  SELECT root, NULL, c.relpages * current_setting('block_size'::text)::bigint
  FROM file JOIN pg_class AS c ON c.oid = file.oid
  UNION ALL
  SELECT root, CASE WHEN pg_catalog.pg_relation_size(oid) = 0 THEN 0 END, pg_catalog.pg_total_relation_size(oid)
  FROM looked_at
)
SELECT root, sum(rows)::bigint, sum(bytes)::bigint FROM told GROUP BY root
"""
"""$1: relations. Returns rows and bytes as of the last VACUUM or ANALYZE, summed over the partitions.

Tables without one are measured on disk if they are few, since ten thousand take seconds; if they are many, only the
rows counted by the server's statistics are returned.
"""

DEFINITIONS = f"""
SELECT c.oid, c.relispartition, parent.names,
  CASE WHEN c.relispartition AND c.oid NOT IN {_LOCKED} THEN pg_get_expr(c.relpartbound, c.oid) END,
  CASE WHEN c.relkind = 'p' THEN pg_get_partkeydef(c.oid) END,
  CASE WHEN c.relkind IN ('v', 'm') AND NOT EXISTS {_LOCKED} THEN pg_get_viewdef(c.oid, true) END,
  parent.schemas, parent.tables
FROM pg_catalog.unnest($1::oid[]) AS relation(oid) JOIN pg_class AS c ON c.oid = relation.oid
LEFT JOIN (SELECT inhrelid, string_agg(inhparent::regclass::text, ', '::text ORDER BY inhseqno) AS names,
             pg_catalog.array_agg(home.nspname::text) AS schemas, pg_catalog.array_agg(own.relname::text) AS tables
           FROM pg_inherits JOIN pg_class AS own ON own.oid = inhparent
           JOIN pg_namespace AS home ON home.oid = own.relnamespace GROUP BY inhrelid) AS parent
  ON parent.inhrelid = c.oid
WHERE c.relkind IN ('v', 'm', 'p') OR parent.names IS NOT NULL
"""
"""$1: relations. Returns the parents of a relation, its bounds, its partition key and a view's query.

Also the schemas and names of its parents.
"""
