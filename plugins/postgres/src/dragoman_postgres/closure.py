"""Finds objects of a database that may run its users' code, as SQL: the closure over the catalog's dependencies.

It begins with functions that nobody has reviewed and goes from each object to those that run it: a view by its rule, a
table by its policies, by what the planner computes for its indexes, checks, keys and statistics, and by the types of
its columns; a type by its casts, its comparison and its checks. The system's own objects have numbers below 16384,
whatever their schema. Dependencies on them are not recorded, so expression trees show which of its functions they call.
"""

from __future__ import annotations

from dragoman_postgres.queries import STARTED

# Trees that are executed: of users' views, policies, domains' checks and functions of standard SQL, and of arguments'
# defaults.
_TREES = """
SELECT 'pg_rewrite'::regclass AS class, r.oid, r.xmin, r.ev_action::text || r.ev_qual::text AS tree FROM pg_rewrite r
JOIN pg_class c ON c.oid = r.ev_class AND c.relkind = 'v' WHERE r.oid >= 16384
UNION ALL SELECT 'pg_policy'::regclass, oid, xmin, polqual::text FROM pg_policy
UNION ALL SELECT 'pg_constraint'::regclass, oid, xmin, conbin::text FROM pg_constraint
WHERE contypid >= 16384 AND contype = 'c'
UNION ALL SELECT 'pg_proc'::regclass, p.oid, p.xmin, to_jsonb(p) ->> 'prosqlbody' FROM pg_proc p
JOIN pg_language l ON l.oid = p.prolang WHERE p.oid >= 16384 AND l.lanname = 'sql'
UNION ALL SELECT 'pg_proc'::regclass, oid, xmin, proargdefaults::text FROM pg_proc WHERE proargdefaults IS NOT NULL
"""
STAMP = f"SELECT count(*), sum(hashint8extended(oid::int8, xmin::text::int8)), {STARTED} FROM ({_TREES}) AS t"
"""Changes once a tree is created, dropped or replaced, and with the server."""
ANYTHING = """
SELECT EXISTS (SELECT FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
    WHERE p.oid >= 16384 OR p.prosupport::oid >= 16384 OR l.lanname NOT IN ('internal', 'c', 'sql'))
  OR EXISTS (SELECT FROM pg_class WHERE relkind = 'f') OR EXISTS (SELECT FROM pg_operator WHERE oid >= 16384)
  OR EXISTS (SELECT FROM pg_cast WHERE oid >= 16384) OR EXISTS (SELECT FROM pg_amproc WHERE oid >= 16384)
"""
"""Whether there is anything to begin with beside trees. Most databases end here."""
# Functions of the system that act, and those that run or build what is given as text.
_RISKY = "p.oid < 16384 AND (p.provolatile = 'v' AND p.proname <> ALL ($1::name[]) OR p.proname LIKE ANY ($2::text[]))"
CALLING = f"""
SELECT t.class::oid AS class, t.oid, bool_or({_RISKY} OR t.writes) AS acts,
  bool_or(p.proname ~ '^(jsonb?_)?populate_record') AS populates
FROM (SELECT *, tree ~ ':commandType [^1]' AS writes FROM ({_TREES}) AS t OFFSET 0) AS t
CROSS JOIN LATERAL regexp_matches(t.tree, ':(?:funcid|opfuncid|aggfnoid|winfnoid) ([0-9]+)', 'g') AS f (id)
JOIN pg_proc p ON p.oid = f.id[1]::oid
GROUP BY 1, 2 HAVING bool_or({_RISKY} OR t.writes OR p.proname ~ '^(jsonb?_)?populate_record')
"""
"""The trees that call acting functions of the system, or that build rows of a type from values.

$1: names of volatile functions that are harmless, $2: patterns of others that are not.
"""

# Of the types that SQL's JSON functions return, as JSON_VALUE(... RETURNING d), no dependency tells: the tree does.
# All trees are searched, so it must be done once, and not for each object that is reached.
_RETURNED = f"""
SELECT t.class::oid AS class, t.oid, found.id[1]::oid AS type FROM ({_TREES}) AS t
CROSS JOIN LATERAL regexp_matches(t.tree,
  '[{{]JSONRETURNING :format (?:<>|[{{][^{{}}]*[}}]) :typid ([0-9]+)', 'g') AS found (id)
WHERE t.tree LIKE '%{{JSONRETURNING %' AND found.id[1]::oid >= 16384
"""

# A call whose first argument is a column is never computed ahead, unless its body is inlined.
_CALL = "%s [^{}]*:args \\(\\{(?:RELABELTYPE :arg \\{)?VAR "
_WAITS = f"""
(EXISTS (SELECT FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang WHERE p.oid = r.code AND l.lanname <> 'sql')
 AND (SELECT count(*) FROM regexp_matches(used.tree, format('%s ', r.sign), 'g'))
   = (SELECT nullif(count(*), 0) FROM regexp_matches(used.tree, format('{_CALL.replace("'", "''")}', r.sign), 'g')))
"""

# kind: 'run' (reaching it may run code), 'check' (a domain's check may: of the domain, or of a relation with such a
# column), 'nest' (a type that contains such a domain), 'policy' (for those whom its policies bind), 'all' (any query
# may).
REACHED = f"""
WITH RECURSIVE member AS (
  -- What a superuser owns, as far as it is a function: whoever owns an extension may add their own.
  SELECT d.classid, d.objid, e.extname = ANY ($1) AS trusted
  FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid
  WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e' AND (d.classid <> 'pg_proc'::regclass OR EXISTS (
    SELECT FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang JOIN pg_roles o ON o.oid = p.proowner
    WHERE p.oid = d.objid AND (o.rolsuper OR l.lanname IN ('c', 'internal')) AND p.oid <> ALL ($11::oid[])))
), acting AS (
  SELECT class, oid FROM ROWS FROM (unnest($6::oid[]), unnest($7::oid[])) AS a (class, oid)
), risky AS (
  SELECT p.oid FROM pg_proc p WHERE {_RISKY.replace("$1", "$4").replace("$2", "$5")}
), made AS (
  SELECT p.oid FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang JOIN pg_namespace n ON n.oid = p.pronamespace
  LEFT JOIN member m ON m.classid = 'pg_proc'::regclass AND m.objid = p.oid
  WHERE CASE
    WHEN p.oid < 16384 THEN l.lanname NOT IN ('internal', 'c', 'sql')
    WHEN ARRAY[lower(p.proname), lower(n.nspname || '.' || p.proname)] && $8 OR p.oid = ANY ($10::oid[]) THEN false
    WHEN p.prokind = 'a' THEN false
    -- What CREATE TYPE ... AS RANGE makes beside the type.
    WHEN l.lanname = 'internal' AND p.prosrc ~ '^(multi)?range_constructor[0-3]$' THEN false
    WHEN m.objid IS NOT NULL
      THEN p.proname ~ '^(crosstab|connectby|xpath_table|dblink|isn_weak|set_limit)'
        -- What PostGIS and its rasters change tables with.
        OR p.proname ~ '^(_?(add|drop|update)_?(geometry|raster|overview)|populate_geometry|st_createoverview|lockrow)'
        OR p.proname ~ '^(unlockrows|addauth|(en|dis)ablelongtrans|st_fromflatgeobuftotable|postgis_ext.*upgrade)'
        OR (NOT m.trusted AND p.provolatile = 'v')
    -- A function of standard SQL that reads a relation, or tells of objects, shows them to those who may not see them.
    ELSE p.prosecdef OR l.lanname <> 'sql' OR to_jsonb(p) ->> 'prosqlbody' IS NULL
      OR EXISTS (SELECT FROM regexp_matches(to_jsonb(p) ->> 'prosqlbody', ':funcid ([0-9]+)', 'g') AS f (id)
                 JOIN pg_proc t ON t.oid = f.id[1]::oid WHERE t.oid < 16384 AND t.proname LIKE ANY ($12::text[]))
      OR EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid
                 AND d.refclassid = 'pg_class'::regclass) END
), plain AS (
  -- Functions that may run behind other objects, and not by their names, which a query may mean for the system's own.
  SELECT unnest($10::oid[]) AS oid
  UNION SELECT p.oid FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
    WHERE p.oid >= 16384 AND to_jsonb(p) ->> 'prosqlbody' IS NOT NULL
      AND NOT ARRAY[lower(p.proname), lower(n.nspname || '.' || p.proname)] && $8
      AND NOT EXISTS (SELECT FROM member m WHERE m.classid = 'pg_proc'::regclass AND m.objid = p.oid)
), deliberate AS (
  -- Casts that only a statement makes which names the type: implicit ones and those to text, JSON and, of whatever
  -- may be assigned, numbers and truth values are also made unseen.
  SELECT c.oid, c.castsource AS source, c.casttarget AS target FROM pg_cast c JOIN pg_type t ON t.oid = c.casttarget
  WHERE c.castcontext = 'e' AND (c.castsource >= 16384 OR c.casttarget >= 16384) AND t.typcategory <> 'S'
    AND t.oid NOT IN ('json'::regtype, 'jsonb'::regtype)
), inward AS (
  -- Casts of an extension from a type of its own: only its own functions and relations have such values.
  SELECT c.oid FROM pg_cast c JOIN pg_type s ON s.oid = c.castsource
  JOIN pg_depend of_cast ON of_cast.classid = 'pg_cast'::regclass AND of_cast.objid = c.oid AND of_cast.deptype = 'e'
  JOIN pg_depend of_type ON of_type.refclassid = of_cast.refclassid AND of_type.refobjid = of_cast.refobjid
    AND of_type.deptype = 'e' AND (of_type.classid = 'pg_type'::regclass AND of_type.objid = s.oid
      OR of_type.classid = 'pg_class'::regclass AND of_type.objid = s.typrelid)
), seeds AS (
  SELECT CASE WHEN oid < 16384 THEN 'all' ELSE 'run' END AS kind, 'pg_proc'::regclass::oid AS class, oid FROM made
  UNION ALL SELECT 'all', 'pg_proc'::regclass, oid FROM pg_proc WHERE oid < 16384 AND prosupport::oid >= 16384
  UNION ALL SELECT 'run', 'pg_class'::regclass, oid FROM pg_class WHERE relkind = 'f' AND NOT $2
  UNION ALL SELECT 'run', class, oid FROM acting WHERE class <> 'pg_constraint'::regclass
  UNION ALL SELECT 'check', 'pg_type'::regclass, c.contypid FROM acting a JOIN pg_constraint c ON c.oid = a.oid
    WHERE a.class = 'pg_constraint'::regclass
  UNION ALL SELECT 'run', 'pg_operator'::regclass, oid FROM pg_operator
    WHERE oid >= 16384 AND ARRAY[oprcode, oprrest, oprjoin]::oid[] && ARRAY(SELECT oid FROM risky)
  -- Those that only compute have names that may be taken for others', and casts that may be made unseen.
  UNION ALL SELECT 'run', 'pg_cast'::regclass, oid FROM pg_cast
    WHERE oid >= 16384 AND (castfunc IN (SELECT oid FROM risky) OR castfunc IN (SELECT oid FROM plain))
  UNION ALL SELECT 'run', 'pg_amproc'::regclass, oid FROM pg_amproc
    WHERE oid >= 16384 AND amproc IN (SELECT oid FROM risky)
  UNION ALL SELECT 'run', 'pg_proc'::regclass, aggfnoid FROM pg_aggregate
    WHERE aggfnoid::oid >= 16384 AND ARRAY[aggtransfn, aggfinalfn, aggcombinefn, aggserialfn, aggdeserialfn,
      aggmtransfn, aggminvtransfn, aggmfinalfn]::oid[] && ARRAY(SELECT oid FROM risky)
), mates AS (
  -- Operators that stand for another one: its commutator or negator.
  SELECT of AS oid, array_agg(oid) AS those FROM (
    SELECT oid, oprcom FROM pg_operator UNION ALL SELECT oid, oprnegate FROM pg_operator) AS o (oid, of)
  WHERE of <> 0 GROUP BY of
), returned AS MATERIALIZED ({_RETURNED}
), reach AS (
  SELECT kind, class, oid FROM seeds
  UNION SELECT above.kind, above.class, above.oid
  FROM (SELECT s.kind, s.class, s.oid, m.those AS mates,
          CASE s.class WHEN 'pg_proc'::regclass THEN s.oid ELSE o.oprcode END AS code,
          CASE s.class WHEN 'pg_proc'::regclass THEN ':(?:funcid|opfuncid) ' ELSE ':opno ' END || s.oid AS sign
        FROM reach s LEFT JOIN pg_operator o ON s.class = 'pg_operator'::regclass AND o.oid = s.oid
        LEFT JOIN mates m ON m.oid = o.oid) AS r
  CROSS JOIN LATERAL (
    -- Objects that name this one as what they run.
    SELECT r.kind, d.classid AS class, d.objid AS oid FROM pg_depend d
    WHERE r.class = 'pg_proc'::regclass AND d.refclassid = r.class AND d.refobjid = r.oid AND d.classid = ANY (
      '{{pg_operator,pg_cast,pg_type,pg_opclass,pg_amproc,pg_am,pg_ts_parser,pg_ts_template,pg_conversion}}'::regclass[])
      AND NOT (d.classid = ANY (
          '{{pg_type,pg_amproc,pg_opclass,pg_am,pg_ts_parser,pg_ts_template,pg_conversion}}'::regclass[])
        AND EXISTS (SELECT FROM member m WHERE m.classid = r.class AND m.objid = r.oid))
      AND NOT (d.classid = 'pg_operator'::regclass AND EXISTS (
        SELECT FROM pg_operator o JOIN pg_namespace n ON n.oid = o.oprnamespace
        WHERE o.oid = d.objid AND ARRAY[o.oprname, n.nspname || '.' || o.oprname]::text[] && $8))
    UNION ALL SELECT 'run', p.classid, p.objid FROM pg_depend p JOIN pg_proc f ON f.oid = p.objid
      WHERE (r.kind <> 'check' OR r.class <> 'pg_class'::regclass OR f.oid = ANY ($9::oid[]))
        AND p.refclassid = r.class AND p.refobjid = r.oid AND p.classid = 'pg_proc'::regclass
        AND (f.prokind = 'a' AND r.class <> 'pg_type'::regclass OR to_jsonb(f) ->> 'prosqlbody' IS NOT NULL
          OR f.proargdefaults IS NOT NULL)
    -- A type's modifiers are read of any text that becomes its name: 'seen(5)'::regtype, a parameter. Of users'
    -- functions a dependency tells it.
    UNION ALL SELECT 'all', 'pg_type'::regclass, t.oid FROM pg_depend d JOIN pg_type t ON t.oid = d.objid
      WHERE r.class = 'pg_proc'::regclass AND d.refclassid = r.class AND d.refobjid = r.oid
        AND d.classid = 'pg_type'::regclass AND r.oid IN (t.typmodin::oid, t.typmodout::oid)
        AND NOT EXISTS (SELECT FROM member m WHERE m.classid = r.class AND m.objid = r.oid)
    UNION ALL SELECT 'all', 'pg_type'::regclass, t.oid FROM pg_type t
      WHERE r.class = 'pg_proc'::regclass AND r.oid < 16384 AND r.oid IN (t.typmodin::oid, t.typmodout::oid)
        AND NOT EXISTS (SELECT FROM member m WHERE m.classid = r.class AND m.objid = r.oid)
    -- Trees that are executed.
    UNION ALL SELECT 'run', 'pg_rewrite'::regclass, d.objid FROM pg_depend d
      WHERE d.refclassid = r.class AND d.refobjid = r.oid AND d.classid = 'pg_rewrite'::regclass
        AND (r.kind <> 'check' OR r.class <> 'pg_class'::regclass OR d.objid = ANY ($9::oid[]))
    UNION ALL SELECT 'run', 'pg_class'::regclass, w.ev_class FROM pg_rewrite w
      WHERE r.class = 'pg_rewrite'::regclass AND w.oid = r.oid AND w.ev_type = '1'
    UNION ALL SELECT 'policy', 'pg_class'::regclass, p.polrelid
      FROM pg_depend d JOIN pg_policy p ON p.oid = d.objid
      WHERE d.refclassid = r.class AND d.refobjid = r.oid AND d.classid = 'pg_policy'::regclass
        AND (r.class <> 'pg_class'::regclass OR (p.polrelid <> r.oid AND r.kind <> 'check'))
    UNION ALL SELECT 'policy', 'pg_class'::regclass, p.polrelid FROM pg_policy p
      WHERE r.class = 'pg_policy'::regclass AND p.oid = r.oid
    UNION ALL SELECT 'check', 'pg_type'::regclass, c.contypid
      FROM pg_depend d JOIN pg_constraint c ON c.oid = d.objid
      WHERE d.refclassid = r.class AND d.refobjid = r.oid AND d.classid = 'pg_constraint'::regclass AND c.contypid <> 0
        AND (r.class <> 'pg_type'::regclass OR c.contypid <> r.oid)
    UNION ALL SELECT CASE WHEN c.oid IS NULL THEN 'run' ELSE 'check' END,
        CASE WHEN c.oid IS NULL THEN t.class ELSE 'pg_type'::regclass END, coalesce(c.contypid, t.oid)
      FROM returned t LEFT JOIN pg_constraint c ON t.class = 'pg_constraint'::regclass AND c.oid = t.oid
      WHERE r.class = 'pg_type'::regclass AND t.type = r.oid
    UNION ALL SELECT 'run', 'pg_class'::regclass, d.objid FROM pg_depend d
      JOIN pg_attrdef a ON a.oid = d.objid JOIN pg_attribute c ON c.attrelid = a.adrelid AND c.attnum = a.adnum
      WHERE r.class <> 'pg_class'::regclass AND d.refclassid = r.class AND d.refobjid = r.oid
        AND d.classid = 'pg_attrdef'::regclass AND c.attgenerated = 'v'
    -- What the planner computes ahead of an index, a key, a check or statistics.
    UNION ALL SELECT used.kind, 'pg_class'::regclass, used.relation FROM (
      SELECT 'run' AS kind, i.indrelid AS relation, concat(i.indexprs, i.indpred) AS tree
        FROM pg_depend d JOIN pg_index i ON i.indexrelid = d.objid
        WHERE d.refclassid = r.class AND d.refobjid = r.oid AND d.classid = 'pg_class'::regclass
      UNION ALL SELECT 'key', k.partrelid, k.partexprs::text
        FROM pg_depend d JOIN pg_partitioned_table k ON k.partrelid = d.objid
        WHERE d.refclassid = r.class AND d.refobjid = r.oid AND d.classid = 'pg_class'::regclass
          AND (r.class <> 'pg_type'::regclass OR k.partexprs IS NOT NULL)
      UNION ALL SELECT 'run', c.conrelid, c.conbin::text
        FROM pg_depend d JOIN pg_constraint c ON c.oid = d.objid
        WHERE d.refclassid = r.class AND d.refobjid = r.oid AND d.classid = 'pg_constraint'::regclass
          AND c.conrelid <> 0 AND c.contype = 'c'
      UNION ALL SELECT 'run', s.stxrelid, to_jsonb(s) ->> 'stxexprs'
        FROM pg_depend d JOIN pg_statistic_ext s ON s.oid = d.objid
        WHERE d.refclassid = r.class AND d.refobjid = r.oid AND d.classid = 'pg_statistic_ext'::regclass
    ) AS used WHERE r.class <> 'pg_class'::regclass AND r.kind <> 'all' AND NOT coalesce({_WAITS}, false)
    UNION ALL SELECT 'run', r.class, r.oid WHERE r.kind = 'key'
    UNION ALL SELECT 'key', 'pg_class'::regclass, inhrelid FROM pg_inherits WHERE r.kind = 'key' AND inhparent = r.oid
    -- Operators that stand for each other, and what compares by them.
    UNION ALL SELECT CASE WHEN mate < 16384 THEN 'all' ELSE 'run' END, r.class, mate FROM unnest(r.mates) AS mate
    UNION ALL SELECT 'run', 'pg_opfamily'::regclass, a.amopfamily FROM pg_amop a
      WHERE r.class = 'pg_operator'::regclass AND a.amopopr = r.oid
    UNION ALL SELECT 'run', 'pg_opfamily'::regclass, a.amprocfamily FROM pg_amproc a
      WHERE r.class = 'pg_amproc'::regclass AND a.oid = r.oid
    UNION ALL SELECT 'run', 'pg_opclass'::regclass, c.oid FROM pg_opclass c
      WHERE r.class = 'pg_opfamily'::regclass AND c.opcfamily = r.oid
    -- Whoever sorts or hashes a type of the system's takes any family of its operator, or the type's default. What
    -- other ways of indexing call, and the second function of hashing, runs for indexes and keys of the class alone.
    UNION ALL SELECT CASE WHEN c.opcintype < 16384 THEN 'all' ELSE 'run' END, 'pg_type'::regclass, c.opcintype
      FROM pg_opclass c JOIN pg_am m ON m.oid = c.opcmethod
      WHERE r.class = 'pg_opclass'::regclass AND c.oid = r.oid AND (
          c.opcintype >= 16384 OR m.amname IN ('btree', 'hash') AND (c.opcdefault OR (
            EXISTS (SELECT FROM pg_amop a WHERE a.amopfamily = c.opcfamily AND a.amopopr < 16384)
            AND (m.amname = 'btree'
              OR EXISTS (SELECT FROM pg_amproc a WHERE a.amprocfamily = c.opcfamily AND a.amprocnum = 1)))))
    UNION ALL SELECT 'all', r.class, r.oid WHERE r.class = 'pg_opfamily'::regclass AND r.oid < 16384
    UNION ALL SELECT 'run', 'pg_type'::regclass, d.objid FROM pg_depend d
      WHERE r.class = 'pg_opclass'::regclass AND d.refclassid = r.class AND d.refobjid = r.oid
        AND d.classid = 'pg_type'::regclass
    -- Casts: what the query does not name, it may still run. Functions of the system's that take any type cast it
    -- inside, whatever the cast's context: `n || 'x'`, quote_literal(n), JSON_VALUE.
    UNION ALL SELECT CASE WHEN t.oid < 16384 THEN 'all' ELSE 'run' END, 'pg_type'::regclass, t.oid
      FROM pg_cast c JOIN pg_type t ON t.oid IN (c.castsource, c.casttarget)
      WHERE r.class = 'pg_cast'::regclass AND c.oid = r.oid
        AND (t.oid >= 16384 OR (c.castsource < 16384 AND c.casttarget < 16384))
        AND c.oid NOT IN (SELECT oid FROM deliberate)
        AND (t.oid = c.castsource OR c.oid NOT IN (SELECT oid FROM inward))
    -- A row of a relation is cast by what takes any type: `t || 'x'`.
    UNION ALL SELECT 'run', 'pg_class'::regclass, t.typrelid
      FROM pg_cast c JOIN pg_type t ON t.oid IN (c.castsource, c.casttarget)
      WHERE r.class = 'pg_cast'::regclass AND c.oid = r.oid AND t.typtype = 'c'
        AND c.oid NOT IN (SELECT oid FROM deliberate)
    -- Types that hold this one, and relations with a column of it.
    UNION ALL SELECT CASE WHEN r.kind = 'check' AND t.typtype <> 'd' THEN 'nest' ELSE r.kind END, r.class, t.oid
      FROM pg_depend d JOIN pg_type t ON t.oid = d.objid
      WHERE r.class = 'pg_type'::regclass AND d.refclassid = r.class AND d.refobjid = r.oid AND d.classid = r.class
    UNION ALL SELECT CASE held.part WHEN 'relation' THEN CASE r.kind WHEN 'nest' THEN 'run' ELSE r.kind END
        ELSE CASE r.kind WHEN 'check' THEN 'nest' ELSE r.kind END END, held.class, held.oid
      FROM pg_depend d JOIN pg_class c ON c.oid = d.objid CROSS JOIN LATERAL (
        SELECT 'relation' AS part, 'pg_class'::regclass AS class, c.oid WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
        UNION ALL SELECT 'type', 'pg_type'::regclass, c.reltype WHERE c.reltype <> 0) AS held
      WHERE r.class = 'pg_type'::regclass AND r.kind <> 'all' AND d.refclassid = r.class AND d.refobjid = r.oid
        AND d.classid = 'pg_class'::regclass
    -- Arrays and multiranges are made of any values of their part: ARRAY[m], array_agg(t), range_agg(r).
    UNION ALL SELECT 'run', part.class, part.oid
      FROM pg_type a LEFT JOIN pg_range g ON (to_jsonb(g) ->> 'rngmultitypid')::oid = a.oid
      JOIN pg_type e ON e.oid = CASE a.typcategory WHEN 'A' THEN a.typelem ELSE g.rngtypid END
      CROSS JOIN LATERAL (VALUES ('pg_type'::regclass, e.oid), ('pg_class'::regclass, e.typrelid)) AS part (class, oid)
      WHERE r.class = 'pg_type'::regclass AND r.kind = 'run' AND a.oid = r.oid AND part.oid >= 16384
    -- Relations: by the parts they are read through, and by their way of storing.
    UNION ALL SELECT 'run', r.class, inhparent FROM pg_inherits
      WHERE r.class = 'pg_class'::regclass AND r.kind = 'run' AND inhrelid = r.oid
    UNION ALL SELECT 'run', 'pg_class'::regclass, coalesce(i.indrelid, c.oid) FROM pg_class c
      LEFT JOIN pg_index i ON i.indexrelid = c.oid WHERE r.class = 'pg_am'::regclass AND c.relam = r.oid
    -- Of text search and encodings nothing tells who uses them.
    UNION ALL SELECT 'all', r.class, r.oid
      WHERE r.class IN ('pg_ts_parser'::regclass, 'pg_ts_template'::regclass, 'pg_conversion'::regclass)
  ) AS above
), unsafe AS (
  SELECT p.*, n.nspname, pronargs > 0 AND pronargs - pronargdefaults <= 1 AS single, n.nspname = ANY ($3) AS reachable
  FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
  WHERE p.oid IN (SELECT oid FROM reach WHERE class = 'pg_proc'::regclass AND kind <> 'check'
    UNION ALL SELECT oid FROM plain
    UNION ALL SELECT aggfnoid FROM pg_aggregate
      WHERE ARRAY[aggtransfn, aggfinalfn]::oid[] && ARRAY(SELECT oid FROM plain))
), operators AS (
  SELECT o.*, n.nspname, n.nspname = ANY ($3) AS reachable
  FROM pg_operator o JOIN pg_namespace n ON n.oid = o.oprnamespace
  WHERE o.oid IN (SELECT oid FROM reach WHERE class = 'pg_operator'::regclass
    UNION ALL SELECT oid FROM pg_operator WHERE oprcode IN (SELECT oid FROM plain))
), own AS (
  -- Types whose values come from relations and casts alone: no literal and no implicit cast makes one.
  SELECT t.oid FROM pg_type t LEFT JOIN pg_type e ON e.oid = t.typelem
  WHERE t.oid >= 16384 AND coalesce(e.typtype, t.typtype) IN ('b', 'e', 'r', 'm') AND t.typcategory <> 'S'
    AND coalesce(e.oid, t.oid) >= 16384
    AND NOT EXISTS (SELECT FROM pg_cast c WHERE c.casttarget IN (t.oid, e.oid) AND c.castcontext = 'i'
                    AND c.castsource NOT IN (t.oid, e.oid))
), composite AS (
  -- Rows of any kind fit them, but compare as rows do: by the system's own operator.
  SELECT t.oid FROM pg_type t JOIN pg_class c ON c.oid = t.typrelid WHERE t.oid >= 16384 AND c.relkind = 'c'
    AND NOT EXISTS (SELECT FROM pg_cast c WHERE c.casttarget = t.oid AND c.castcontext = 'i')
), texts AS (
  SELECT oid FROM pg_type WHERE typcategory = 'S' AND oid < 16384
), signatures AS (
  SELECT 'pg_proc'::regclass AS class, oid, proname AS name, proargtypes::oid[] AS types, nspname, reachable
    FROM unsafe WHERE provariadic = 0 AND pronargdefaults = 0
  UNION ALL SELECT 'pg_operator'::regclass, oid, oprname, ARRAY[oprleft, oprright], nspname, reachable FROM operators
), bound AS (
  -- Only values of these types reach it: literals fit the system's own of the same name better.
  SELECT s.class, s.oid, s.name, ARRAY(SELECT unnest(s.types) INTERSECT SELECT oid FROM own) AS types
  FROM signatures s WHERE s.types && ARRAY(SELECT oid FROM own) AND EXISTS (
    SELECT FROM (SELECT proargtypes::oid[] AS types FROM pg_proc
                 WHERE s.class = 'pg_proc'::regclass AND proname = s.name AND oid < 16384
                 UNION ALL SELECT ARRAY[oprleft, oprright] FROM pg_operator
                 WHERE s.class = 'pg_operator'::regclass AND oprname = s.name AND oid < 16384) AS of_system
    WHERE cardinality(of_system.types) = cardinality(s.types) AND NOT EXISTS (
      SELECT FROM ROWS FROM (unnest(s.types), unnest(of_system.types)) AS a (own, theirs)
      WHERE a.own <> a.theirs AND NOT (a.own IN (SELECT oid FROM own) AND a.theirs IN (SELECT oid FROM texts))))
  -- Beside a function of the same name for other types only these types, and rows of any kind, reach one for composite
  -- types: a literal fits none of both.
  UNION ALL SELECT s.class, s.oid, s.name,
    'record'::regtype::oid || ARRAY(SELECT unnest(s.types) INTERSECT SELECT oid FROM composite)
  FROM signatures s WHERE s.class = 'pg_proc'::regclass AND s.types && ARRAY(SELECT oid FROM composite) AND EXISTS (
    SELECT FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
    WHERE p.proname = s.name AND n.nspname = ANY ($3) AND p.pronargs = cardinality(s.types) AND p.provariadic = 0
      AND p.oid NOT IN (SELECT oid FROM unsafe) AND NOT EXISTS (
        SELECT FROM ROWS FROM (unnest(s.types), unnest(p.proargtypes::oid[])) AS a (own, other)
        JOIN pg_type t ON t.oid = a.other
        WHERE a.own <> a.other AND NOT (a.own IN (SELECT oid FROM composite) AND t.typcategory NOT IN ('C', 'P'))))
  UNION ALL SELECT 'pg_operator'::regclass, o.oid, o.oprname, ARRAY[o.oprleft]
  FROM operators o JOIN composite c ON c.oid = o.oprleft WHERE o.oprright = o.oprleft AND (
    SELECT count(*) FROM pg_operator s WHERE s.oprname = o.oprname AND s.oprleft = s.oprright AND s.oid < 16384
      AND s.oprleft IN ('text'::regtype, 'record'::regtype)) = 2
), casts AS (
  SELECT d.* FROM deliberate d JOIN reach r ON r.class = 'pg_cast'::regclass AND r.oid = d.oid
), holding AS (
  SELECT DISTINCT t.oid AS root, 'pg_type'::regclass::oid AS class, t.oid
    FROM (SELECT unnest(types) FROM bound
          UNION ALL SELECT unnest(ARRAY[source, target]) FROM casts) AS t (oid) WHERE t.oid >= 16384
  UNION SELECT source, 'pg_class'::regclass, typrelid FROM casts JOIN pg_type t ON t.oid = source AND typtype = 'c'
  UNION SELECT h.root, larger.class, larger.oid FROM holding h CROSS JOIN LATERAL (
    SELECT d.classid AS class, d.objid AS oid FROM pg_depend d
    WHERE h.class = 'pg_type'::regclass AND d.refclassid = h.class AND d.refobjid = h.oid
      AND d.classid IN ('pg_type'::regclass, 'pg_class'::regclass)
    UNION ALL SELECT 'pg_type'::regclass, c.reltype FROM pg_class c
    WHERE h.class = 'pg_class'::regclass AND c.oid = h.oid AND c.reltype <> 0
  ) AS larger
), relations AS (
  SELECT c.oid, c.relname, n.nspname, n.nspname = ANY ($3) AND NOT EXISTS (
    SELECT FROM pg_class ahead JOIN pg_namespace a ON a.oid = ahead.relnamespace
    WHERE ahead.relname = c.relname AND array_position($3::name[], a.nspname) < array_position($3::name[], n.nspname)
  ) AS visible
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND c.oid IN (
    SELECT oid FROM reach WHERE class = 'pg_class'::regclass
    UNION ALL SELECT oid FROM holding WHERE class = 'pg_class'::regclass)
)
SELECT CASE WHEN b.oid IS NULL THEN 'function' ELSE 'bound_function' END AS kind, proname::text AS name,
    CASE WHEN NOT reachable THEN nspname::text END AS schema, b.types::int8[]
  FROM unsafe u LEFT JOIN bound b ON b.class = 'pg_proc'::regclass AND b.oid = u.oid WHERE reachable
UNION SELECT 'function', nspname || '.' || proname, NULL, NULL FROM unsafe
UNION SELECT 'single', proname, NULL, NULL FROM unsafe WHERE single AND reachable
-- A call of one argument by the name of a type is a cast to it, where no function fits exactly: lower('x').
UNION SELECT unnest(ARRAY['single', 'function']
      || CASE WHEN t.typtype = 'd' AND t.typcategory = 'C' THEN ARRAY['attribute'] END), t.typname, NULL, NULL
  FROM reach r JOIN pg_type t ON t.oid = r.oid JOIN pg_namespace n ON n.oid = t.typnamespace
  WHERE r.class = 'pg_type'::regclass AND r.kind <> 'all' AND n.nspname = ANY ($3)
UNION SELECT 'attribute', proname, NULL, NULL FROM unsafe u JOIN pg_type t ON t.oid = u.proargtypes[0]
  WHERE single AND reachable AND t.typtype IN ('c', 'p')
    AND NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = t.typrelid AND a.attname = proname)
UNION SELECT CASE WHEN b.oid IS NULL THEN 'operator' ELSE 'bound_operator' END, oprname, NULL, b.types::int8[]
  FROM operators o LEFT JOIN bound b ON b.class = 'pg_operator'::regclass AND b.oid = o.oid WHERE reachable
UNION SELECT 'operator', nspname || '.' || oprname, NULL, NULL FROM operators
UNION SELECT 'type', spelled, NULL, NULL
  FROM reach r JOIN pg_type t ON t.oid = r.oid JOIN pg_namespace n ON n.oid = t.typnamespace
  CROSS JOIN LATERAL unnest(ARRAY[n.nspname || '.' || t.typname, t.typname]) AS spelled
  WHERE r.class = 'pg_type'::regclass AND r.kind <> 'all' AND NOT EXISTS (
    SELECT FROM pg_type s WHERE s.typname = spelled AND s.oid < 16384 AND s.typnamespace = 'pg_catalog'::regnamespace)
UNION SELECT 'type', spelled, NULL, NULL
  FROM reach r JOIN pg_cast c ON c.oid = r.oid JOIN pg_type t ON t.oid = c.casttarget
  CROSS JOIN LATERAL unnest(ARRAY[t.typname, 'pg_catalog.' || t.typname]) AS spelled
  WHERE r.class = 'pg_cast'::regclass AND c.castsource < 16384 AND c.casttarget < 16384
-- Whatever holds the target, a row, an array or a domain of it, casts to it too.
UNION SELECT 'bound_type', spelled, NULL, CASE WHEN c.source >= 16384 THEN ARRAY[c.source]::int8[] END
  FROM casts c CROSS JOIN pg_type t LEFT JOIN pg_type e ON e.oid = t.typelem
  JOIN pg_namespace n ON n.oid = t.typnamespace
  CROSS JOIN LATERAL unnest(ARRAY[n.nspname || '.' || t.typname, t.typname]) AS spelled
  WHERE c.target IN (t.oid, e.oid) OR c.target < 16384 AND coalesce(e.typtype, t.typtype) IN ('c', 'd')
    OR t.oid IN (SELECT oid FROM holding WHERE root = c.target)
UNION SELECT 'binding_type', t.typname, NULL, ARRAY[h.root]::int8[] FROM holding h JOIN pg_type t ON t.oid = h.oid
  WHERE h.class = 'pg_type'::regclass
UNION SELECT 'binding', relname, CASE WHEN spelled THEN nspname END, ARRAY[h.root]::int8[]
  FROM holding h JOIN relations USING (oid) CROSS JOIN LATERAL (VALUES (true), (NOT visible)) AS s (spelled)
  WHERE h.class = 'pg_class'::regclass
UNION SELECT CASE r.kind WHEN 'check' THEN 'checked' ELSE 'relation' END, relname, nspname,
    CASE WHEN visible THEN ARRAY[1]::int8[] END
  FROM reach r JOIN relations USING (oid)
  WHERE r.class = 'pg_class'::regclass
    AND (r.kind IN ('run', 'check') OR r.kind = 'policy' AND row_security_active(r.oid))
UNION SELECT 'everything', pg_describe_object(class, oid, 0), NULL, NULL FROM reach WHERE kind = 'all'
"""
"""What a query may not name, by kind.

- $1: trusted extensions.
- $2: whether foreign tables are trusted.
- $3: the search path.
- $4 and $5: as in `CALLING`.
- $6 and $7: the classes and numbers of the trees that act.
- $8: names of functions and operators that are allowed.
- $9: the rules that build rows of a type from values.
- $10: functions in SQL that only compute.
- $11: functions of extensions that may run what users made.
- $12: patterns of functions that tell of objects.
"""
