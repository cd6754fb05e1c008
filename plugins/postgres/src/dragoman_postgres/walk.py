"""Walks a tree of PostgreSQL's grammar: every node and every field must be one that a query may have.

A tree is JSON: an object whose key begins with a capital is a node, every other key is a field of a node. Anything not
listed below is refused, so that a later grammar cannot bring in constructs that nobody has reviewed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from dragoman import (
    CallKind,
    FunctionCall,
    Named,
    NamedRelation,
    ParsedStatement,
    Refusal,
    Relation,
    UnsafeSql,
    WriteDenied,
    schema_of,
)

from dragoman_postgres.projections import INTEGER, PROJECTING, is_integer
from dragoman_postgres.rasters import TEXT, may_be_raster
from dragoman_postgres.rules import load_allowed
from dragoman_postgres.samples import Samples
from dragoman_postgres.searches import (
    HEADLINE,
    LONGEST_NORMALIZED,
    LONGEST_REWRITING,
    LONGEST_SEARCH,
    MAKERS,
    NORMALIZERS,
    SEARCHES,
    is_short,
)
from dragoman_postgres.searches import Names as SearchNames

Names = frozenset[str]
Name = tuple[str, str | None]
Node = dict[str, Any]

# Nodes and fields to walk through: expressions, clauses and the nodes that join them.
_THROUGH = (
    # Nodes of queries
    "SelectStmt WindowDef SortBy GroupingSet GroupingFunc List RangeSubselect RangeFunction"
    " RangeTableFuncCol RangeTableSample JoinExpr ColumnDef CTESearchClause CTECycleClause"
    # Nodes of expressions
    " A_Expr A_Indirection A_Indices BoolExpr NullTest BooleanTest CaseExpr CaseWhen CoalesceExpr"
    " MinMaxExpr SubLink NamedArgExpr TypeCast TypeName CollateClause XmlExpr XmlSerialize"
    " JsonObjectConstructor JsonArrayConstructor JsonArrayQueryConstructor JsonObjectAgg JsonArrayAgg JsonFuncExpr"
    " JsonTable JsonTablePathSpec JsonKeyValue JsonValueExpr JsonArgument JsonIsPredicate JsonParseExpr"
    " JsonScalarExpr JsonSerializeExpr JsonBehavior JsonOutput JsonFormat"
    # Fields of queries
    " distinctClause targetList fromClause whereClause groupClause havingClause windowClause valuesLists sortClause"
    " limitOffset limitCount larg rarg val node relation subquery functions items docexpr rowexpr namespaces columns"
    " colexpr coldefexpr repeatable quals content partitionClause orderClause startOffset endOffset alias over"
    " ctequery search_clause cycle_clause cycle_mark_value cycle_mark_default coldeflist collClause"
    # Fields of expressions
    " arg args lexpr rexpr testexpr subselect expr result defresult elements lidx uidx typeName typmods named_args"
    " agg_order agg_filter context_item pathspec passing output on_empty on_error exprs key value raw_expr string query"
    " constructor returning format"
)
# Fields with plain facts: literals, names that run nothing, flags, offsets.
_SKIPPED = (
    "A_Star ParamRef String Integer Float Boolean BitString sval ival fval boolval bsval isnull"
    " fields funcname relname schemaname catalogname inh relpersistence"
    " location name_location name kind op all groupDistinct limitOption indirection"
    " boolop nulltesttype booltesttype argisrow subLinkType refname frameOptions"
    " sortby_dir sortby_nulls is_slice lateral ordinality is_rowsfrom for_ordinality is_not_null is_local"
    " jointype isNatural usingClause aliasname colnames row_format typmod xmloption indent"
    " names typemod arrayBounds agg_star agg_distinct agg_within_group func_variadic funcformat absent_on_null unique"
    " unique_keys item_type btype coltype wrapper quotes column_name format_type encoding argnumber"
    " search_col_list search_breadth_first search_seq_column cycle_col_list cycle_mark_column cycle_path_column"
    " arg_names"
)
_WORDS = {
    "InsertStmt": "INSERT",
    "UpdateStmt": "UPDATE",
    "DeleteStmt": "DELETE",
    "MergeStmt": "MERGE",
}
# Functions that may be harmless with certain arguments.
FORMED = frozenset(
    """current_setting pg_input_is_valid pg_input_error_info btrim ltrim rtrim translate xpath xpath_exists xmlexists
    st_asgeojson st_buffer st_frechetdistance st_geohash st_hausdorffdistance st_offsetcurve""".split()
).union(PROJECTING)
_SHORT_ONLY = {
    **dict.fromkeys(NORMALIZERS, LONGEST_NORMALIZED),
    "tsquery": LONGEST_SEARCH,
    "ts_rewrite": LONGEST_REWRITING,
    "ts_match_tt": LONGEST_SEARCH,
}
ARRAY = "array[]"
"""Reads as a call where an array is built from values."""
WHOLE_ROW = "row.*"
"""Reads as a call where a row of a relation is used as a value."""
ROW = "row()"
"""Reads as a call where a row is built from values."""
NO_TEXT = "*"
"""Stands for an argument that is not a literal where a literal would be a name, or whose text is known to be short."""
Places = Callable[[int | None], int | None]


class Walk:
    """One walk over one query, and its findings: names as the server takes them, with offsets in bytes.

    - `calls`: by name and kind, except those whose arguments matter, which are `formed`.
    - `variables`: the grammar's nodes of the relations, one for each mention.
    - `query`: the node of the whole query.

    With a function in FROM, a.b may be a field of any value, as (a).b is.
    """

    def __init__(self) -> None:
        self._rules = load_allowed()
        self._scopes: list[tuple[Node, Names]] = []
        self._waiting: list[Node] = []
        self._names: Names = frozenset()
        self._stars = 0
        self._samples = Samples()
        self._rows = {"xmltable", "json_table"}
        self._searches = SearchNames()
        self._calls_in_from = False
        self._calls: dict[tuple[str, str | None, CallKind], int | None] = {}
        self._formed: list[FunctionCall] = []
        self._operators: dict[Name, int | None] = {}
        self._types: dict[Name, int | None] = {}
        self._others: dict[Name, int | None] = {}
        self._naming: set[int] = set()
        self._configurations: set[int] = set()
        self._relations: dict[NamedRelation, None] = {}
        self.variables: list[Node] = []
        self.query: Node = {}

    def run(self, query: Node) -> None:
        """Walk through a SELECT. Raises `WriteDenied` or `UnsafeSql`, with offsets in bytes."""
        self.query = query
        self._scopes.append((query, frozenset()))
        while self._scopes:
            node, self._names = self._scopes.pop()
            self._enter(node)
        self._samples.check()
        for offset in self._searches.find_doubtful():
            self._formed.append(FunctionCall("ts_match_tt", None, offset, "function", (None, None)))
        for offset in self._searches.find_texts():
            self._formed.append(FunctionCall(HEADLINE, None, offset, "function", (None, None, None)))
        if self._calls_in_from:
            self._rows.update(name for name, _, kind in self._calls if kind == "function")
        if self._stars > 0 or not self._samples.columns.isdisjoint(self._samples.rows | self._rows):
            self._calls.setdefault((WHOLE_ROW, None, "syntax"), None)

    def finish(self, places: Places, refusal: Refusal | None) -> ParsedStatement:
        """Return the findings so far. `places` converts offsets in bytes to characters."""
        calls = self._calls
        if self._calls_in_from:
            attributes = [(name, offset) for (name, _, kind), offset in calls.items() if kind == "attribute"]
            calls |= {(name, None, "field"): offset for name, offset in attributes}
        return ParsedStatement(
            relations=tuple(NamedRelation(relation, places(offset)) for relation, offset in self._relations),
            calls=(
                *(FunctionCall(name, schema, places(offset), kind) for (name, schema, kind), offset in calls.items()),
                *(call._replace(offset=places(call.offset)) for call in self._formed),
            ),
            operators=tuple(Named(*name, places(offset)) for name, offset in self._operators.items()),
            types=tuple(Named(*name, places(offset)) for name, offset in self._types.items()),
            others=tuple(Named(*name, places(offset)) for name, offset in self._others.items()),
            refusal=refusal,
        )

    def _enter(self, node: Node) -> None:
        """Walk through the nodes that see the same names."""
        waiting = self._waiting
        waiting.append(node)
        while waiting:
            node = waiting.pop()
            if "withClause" in node:
                self._with(node)
                continue
            for key, value in node.items():
                step = _STEPS.get(key, _unknown)
                if step is None:
                    continue
                if step is not _through:
                    step(self, node, key)
                if type(value) is _OBJECT:
                    waiting.append(value)
                elif type(value) is _ARRAY:
                    waiting.extend(value)

    def _with(self, node: Node) -> None:
        """Postpone a query with a WITH clause, and the clause's members: they see other names."""
        clause, names = node["withClause"], self._names
        members = [item["CommonTableExpr"] for item in clause["ctes"]]
        every = names | {member["ctename"] for member in members}
        self._scopes.append(({key: value for key, value in node.items() if key != "withClause"}, every))
        for member in members:
            self._check_member(member)
            inner = {key: value for key, value in member.items() if key not in _MEMBER_FACTS}
            self._scopes.append((inner, every if clause.get("recursive") else names))
            # Without RECURSIVE, a member sees the members before it.
            names |= {member["ctename"]}

    def _check_member(self, member: Node) -> None:
        for name in member.get("aliascolnames", ()):
            self._searches.keep(_text(name), None)
        (kind,) = member["ctequery"]
        if kind != "SelectStmt":
            what = _WORDS.get(kind, kind)
            raise WriteDenied(
                f"WITH holds {what}, which is not a query.",
                suggestion="Only queries may stand within WITH.",
                offset=member.get("location"),
            )

    # Steps: what is checked when a key is found

    def relation(self, node: Node, key: str) -> None:
        """Record a relation, unless WITH defines its name."""
        var = node[key]
        name, schema, offset = var["relname"], var.get("schemaname"), var.get("location")
        if schema is None and name in self._names:
            self._rows.add(name)
            return
        if schema is None and (f"pg_catalog.{name}" in self._rules.relations or name.startswith("pg_")):
            # The system's schema is searched before any other.
            schema = "pg_catalog"
        self._samples.relation(f"{schema}.{name}", offset)
        self._relations[NamedRelation(Relation(name, schema, var.get("catalogname")), offset)] = None
        self._searches.keep_relation(var.get("alias", {}).get("aliasname", name))
        self.variables.append(var)

    def constant(self, node: Node, key: str) -> None:
        """Record that a literal may be a raster."""
        if may_be_raster(_literal(node) or ""):
            self._calls.setdefault((TEXT, None, "syntax"), node[key].get("location"))

    def function(self, node: Node, key: str) -> None:
        """Record a call."""
        call = node[key]
        name, schema = _split_name(call["funcname"])
        if (name, schema) == _AMBIGUOUS:
            schema = None
        if name in FORMED:
            self._keep_with_arguments(name, schema, call)
        elif name in _SHORT_ONLY:
            self._keep_short(name, schema, call)
        elif name in self._rules.searching:
            self._keep_search(name, schema, call)
        else:
            self._calls.setdefault((name, schema, "function"), call.get("location"))

    def keyword(self, node: Node, key: str) -> None:
        """Record a function without parentheses, where the core's rules may be about it."""
        if node[key].get("op") == "SVFOP_CURRENT_SCHEMA":
            self._calls.setdefault(("current_schema", None, "function"), node[key].get("location"))

    def _keep_with_arguments(self, name: str, schema: str | None, call: Node) -> None:
        read = _read_projection if name in PROJECTING else _read_text
        arguments = tuple(map(read, call.get("args", ())))
        self._formed.append(FunctionCall(name, schema, call.get("location"), "function", arguments))
        if name.startswith("pg_input_") and len(arguments) == 2:
            self._keep_type_text((arguments[1] or "").lower(), call)

    def _keep_type_text(self, text: str, call: Node) -> None:
        """Record the types that a text may name, as a cast would."""
        for word in _TYPE_WORD.findall(text):
            self._types.setdefault((word, None), call.get("location"))
            self._keep_read_type(word, call.get("location"), made=call["args"][0])

    def _keep_search(self, name: str, schema: str | None, call: Node) -> None:
        """Record a call whose first argument may be the name of a text search configuration.

        A parameter may be any name.
        """
        given: list[Node] = call.get("args", [])
        self._configurations.update(id(each["TypeCast"]) for each in given[:1] if "TypeCast" in each)
        arguments = [None if "ParamRef" in each else _literal(each) or NO_TEXT for each in given[:1]]
        arguments += [None for _ in given[1:]]
        if name in MAKERS and given:
            arguments[-1] = _short(given[-1])
        if name == HEADLINE and len(given) > 2:
            arguments[-1] = self._read_options(given, call.get("location"))
        self._formed.append(FunctionCall(name, schema, call.get("location"), "function", tuple(arguments)))

    def _read_options(self, given: list[Node], offset: int | None) -> str | None:
        """Return the options of a headline. The third of three arguments may be the query, too."""
        options = _literal(given[-1])
        if options is None and len(given) == 3:
            self._searches.keep_query(given[-1], offset)
            return NO_TEXT
        return options

    def _keep_short(self, name: str, schema: str | None, call: Node) -> None:
        """Record a call with the arguments that are known to be short."""
        arguments = tuple(_short(argument, _SHORT_ONLY[name]) for argument in call.get("args", ()))
        self._formed.append(FunctionCall(name, schema, call.get("location"), "function", arguments))

    def cast(self, node: Node, key: str) -> None:
        """Record a cast to a type whose text matters: names, as in 'sales.orders'::regclass, and searches.

        Which name it is counts only if a search takes it: elsewhere, numbers may become names of that type.
        """
        cast = node[key]
        type_ = cast["typeName"]
        name, _ = _split_name(type_["names"])
        arguments = (_literal(cast["arg"]),) if id(cast) in self._configurations else None
        if self._keep_read_type(name, type_.get("location"), arguments, made=cast["arg"]):
            self._naming.add(id(type_))

    def _keep_read_type(
        self, name: str, offset: int | None, arguments: tuple[str | None, ...] | None = None, made: Node | None = None
    ) -> bool:
        """Record a type whose text matters, `made` of a value where one is known. Return whether it is such a type."""
        if name in self._rules.naming:
            self._formed.append(FunctionCall(name, None, offset, "syntax", arguments))
        elif name in SEARCHES:
            self._keep_made(None if made is None else _short(made), offset)
        else:
            return False
        return True

    def _keep_made(self, text: str | None, offset: int | None) -> None:
        """Record that a text search query is built from a text."""
        self._formed.append(FunctionCall("tsquery", None, offset, "function", (text,)))

    def collation(self, node: Node, key: str) -> None:
        """Record the name of a collation."""
        self._others.setdefault(_split_name(node[key]), node.get("location"))

    def column(self, node: Node, key: str) -> None:
        """Record a.b: if a has no column b, this calls b as a function of a."""
        fields = node[key]["fields"]
        name = _text(fields[-1])
        self._stars += not name
        self._samples.columns.add(name or "*")
        if len(fields) > 1 and name:
            self._calls.setdefault((name, None, "attribute"), node[key].get("location"))

    def target(self, node: Node, key: str) -> None:
        """Record that a star alone means columns, in an expression the row; and what a column is computed from."""
        if "name" in node[key]:
            self._searches.keep(node[key]["name"], node[key].get("val"))
        fields = node[key].get("val", {}).get("ColumnRef", {}).get("fields")
        self._stars -= bool(fields) and "A_Star" in fields[-1]

    def array(self, node: Node, key: str) -> None:
        """Record that the elements of an array get one type."""
        self._calls.setdefault((ARRAY, None, "syntax"), node[key].get("location"))

    def row(self, node: Node, key: str) -> None:
        """Record that a row is built from values."""
        self._calls.setdefault((ROW, None, "syntax"), node[key].get("location"))

    def alias(self, node: Node, key: str) -> None:
        """Record the alias of a relation. With its columns renamed, any name may mean any of them."""
        self._samples.rows.add(node[key]["aliasname"])
        if "colnames" in node[key]:
            self._samples.columns.add("*")
            if "functions" not in node:
                self._keep_unknown(map(_text, node[key]["colnames"]))

    def made_column(self, node: Node, key: str) -> None:
        """Record that a column of this name may contain anything."""
        self._keep_unknown([node[key] if key == "colname" else node[key].get("name", "")])

    def _keep_unknown(self, names: Iterable[str]) -> None:
        for name in names:
            self._searches.keep(name, None)

    def indirection(self, node: Node, key: str) -> None:
        """Record (a).b, as in `column`."""
        for item in node[key]["indirection"]:
            if name := _text(item):
                self._calls.setdefault((name, None, "field"), node[key]["arg"].get("location"))
            if "A_Indices" in item:
                self._waiting.append(item)

    def operator(self, node: Node, key: str) -> None:
        """Record the operator of an expression."""
        expression = node[key]
        kind = expression["kind"]
        if kind in _BETWEEN:
            for name in _BETWEEN[kind]:
                self._operators.setdefault((name, None), expression.get("location"))
        else:
            self._keep_operator(expression.get("name", ()), expression.get("location"))
            if "lexpr" in expression and _split_name(expression["name"])[0] == "@@":
                self._searches.keep_match(expression["lexpr"], expression["rexpr"], expression.get("location"))

    def case(self, node: Node, key: str) -> None:
        """Record that CASE a WHEN b compares."""
        if "arg" in node[key]:
            self._operators.setdefault(("=", None), node[key].get("location"))

    def join(self, node: Node, key: str) -> None:
        """Record that USING and NATURAL compare, and what they read."""
        if "usingClause" in node[key] or "isNatural" in node[key]:
            self._operators.setdefault(("=", None), None)
        self._samples.columns.update(map(_text, node[key].get("usingClause", [])))
        if "isNatural" in node[key]:
            self._samples.columns.add("*")

    def membership(self, node: Node, key: str) -> None:
        """Record that IN compares."""
        if node[key]["subLinkType"] == "ARRAY_SUBLINK":
            self.array(node, key)
        if "operName" in node[key] and _split_name(node[key]["operName"])[0] == "@@":
            self._searches.keep_match(node[key]["testexpr"], node[key]["subselect"], node[key].get("location"))
        if node[key]["subLinkType"] == "ANY_SUBLINK" and "operName" not in node[key]:
            self._operators.setdefault(("=", None), node[key].get("location"))

    def using(self, node: Node, key: str) -> None:
        """Record the operator of ORDER BY x USING op, or of a comparison with a subquery."""
        self._keep_operator(node[key], node.get("location"))

    def _keep_operator(self, parts: Any, offset: int | None) -> None:
        if parts:
            self._operators.setdefault(_split_name(parts), offset)

    def json(self, node: Node, key: str) -> None:
        """Record words of JSON.

        Servers older than this grammar take them for functions, which anybody may have created.
        """
        for name in _JSON_WORDS[key]:
            self._calls.setdefault((name, None, "syntax"), node[key].get("location"))

    def type(self, node: Node, key: str) -> None:
        """Record the name of a type."""
        named = _split_name(node[key]["names"])
        self._types.setdefault(named, node[key].get("location"))
        if id(node[key]) not in self._naming:
            self._keep_read_type(named[0], node[key].get("location"))

    def table_function(self, node: Node, key: str) -> None:
        """Record that a name in FROM may be a value of any type, and which name."""
        self._calls_in_from = True
        self._searches.keep_function(node[key])

    def xml_table(self, node: Node, key: str) -> None:
        """Record the paths of XMLTABLE. Each reads as a call of its own."""
        table = node[key]
        columns = [column["RangeTableFuncCol"] for column in table["columns"]]
        paths = [_path_of(column) for column in columns if "for_ordinality" not in column]
        self._formed += (
            FunctionCall("xmltable", None, table.get("location"), "function", (path,))
            for path in (_read_text(table["rowexpr"]), *paths)
        )

    def sample(self, node: Node, key: str) -> None:
        """Check the method of TABLESAMPLE."""
        name, schema = _split_name(node[key])
        if name not in ("bernoulli", "system") or schema not in (None, "pg_catalog"):
            raise UnsafeSql(
                f"The sampling method {name} is not accepted.",
                suggestion="Use TABLESAMPLE bernoulli(percent) or system(percent).",
                offset=node.get("location"),
            )

    def into(self, node: Node, key: str) -> None:
        """Refuse SELECT INTO."""
        raise WriteDenied(
            "SELECT INTO creates a table.",
            suggestion="Leave INTO out; the rows come back as the answer.",
            offset=node[key].get("rel", {}).get("location"),
        )

    def lock(self, node: Node, key: str) -> None:
        """Refuse FOR UPDATE and FOR SHARE."""
        raise WriteDenied("FOR UPDATE and FOR SHARE lock rows.", suggestion="Leave the locking clause out.")


_OBJECT: type[Any] = dict
_ARRAY: type[Any] = list
_Step = Callable[[Walk, Node, str], None]
# Read as two comparisons.
_BETWEEN = {
    "AEXPR_BETWEEN": (">=", "<="),
    "AEXPR_BETWEEN_SYM": (">=", "<="),
    "AEXPR_NOT_BETWEEN": ("<", ">"),
    "AEXPR_NOT_BETWEEN_SYM": ("<", ">"),
}
_OF_LITERALS = frozenset(
    {(name, schema) for name in "text int4 float8 numeric".split() for schema in (None, "pg_catalog")}
)
_TYPE_WORD = re.compile(r"\w+", re.ASCII)
_MEMBER_FACTS = frozenset({"ctename", "aliascolnames", "ctematerialized", "location", "cterecursive"})


def _through(walk: Walk, node: Node, key: str) -> None:
    """Do nothing: there is nothing to check."""


def _unknown(walk: Walk, node: Node, key: str) -> None:
    raise UnsafeSql(
        f"The statement holds a construct that is not on the list of harmless ones ({key}).",
        suggestion="Write the query without it.",
        offset=node[key].get("location") if isinstance(node[key], dict) else None,
    )


_AMBIGUOUS = ("json_object", "pg_catalog")
"""What the grammar makes of JSON_OBJECT('a', 'b'). Before 16, servers look for any function of that name."""
_JSON_WORDS = {
    "JsonFuncExpr": ("json_exists", "json_query", "json_value"),
    "JsonParseExpr": ("json",),
    "JsonScalarExpr": ("json_scalar",),
    "JsonSerializeExpr": ("json_serialize",),
    "JsonObjectConstructor": ("json_object",),
    "JsonArrayConstructor": ("json_array",),
    "JsonObjectAgg": ("json_objectagg",),
    "JsonArrayAgg": ("json_arrayagg",),
}
_STEPS: dict[str, _Step | None] = {
    **dict.fromkeys(_SKIPPED.split()),
    **dict.fromkeys(_THROUGH.split(), _through),
    "A_Const": Walk.constant,
    "RangeVar": Walk.relation,
    "FuncCall": Walk.function,
    "SQLValueFunction": Walk.keyword,
    "ColumnRef": Walk.column,
    "ResTarget": Walk.target,
    "A_ArrayExpr": Walk.array,
    "RowExpr": Walk.row,
    "alias": Walk.alias,
    "join_using_alias": Walk.alias,
    "A_Indirection": Walk.indirection,
    **dict.fromkeys(_JSON_WORDS, Walk.json),
    "A_Expr": Walk.operator,
    "CaseExpr": Walk.case,
    "JoinExpr": Walk.join,
    "SubLink": Walk.membership,
    "typeName": Walk.type,
    "TypeCast": Walk.cast,
    "collname": Walk.collation,
    "RangeFunction": Walk.table_function,
    "RangeTableFunc": Walk.xml_table,
    "JsonTableColumn": Walk.made_column,
    "colname": Walk.made_column,
    "operName": Walk.using,
    "useOp": Walk.using,
    "method": Walk.sample,
    "intoClause": Walk.into,
    "lockingClause": Walk.lock,
}


def _short(argument: Any, most: int = LONGEST_SEARCH) -> str | None:
    """Return a placeholder for an argument that is known to be short, or None."""
    return NO_TEXT if is_short(argument, most) else None


def _literal(argument: Any) -> str | None:
    """Return the text of a text literal, or None."""
    constant = argument.get("A_Const", {})
    return str(constant["sval"].get("sval", "")) if "sval" in constant else None


def _read_text(argument: Node) -> str | None:
    """Return the text of a literal, also where it is cast to its own type, as the server prints views. Or None."""
    cast = argument.get("TypeCast")
    if cast is None:
        return _literal(argument) or _number(argument)
    type_ = cast["typeName"]
    plain = _split_name(type_["names"]) in _OF_LITERALS and not type_.keys() & {"typmods", "arrayBounds"}
    return _read_text(cast["arg"]) if plain else None


def _read_projection(argument: Node) -> str | None:
    """Return what stands for an integer, or the text of a literal, or None."""
    return INTEGER if is_integer(argument) else _read_text(argument)


def _number(argument: Node) -> str | None:
    """Return the text of a number without a sign, or None."""
    constant = argument.get("A_Const", {})
    if "fval" in constant:
        return str(constant["fval"]["fval"])
    return str(constant["ival"].get("ival", 0)) if "ival" in constant else None


def _path_of(column: Node) -> str | None:
    """Return the path of a column of XMLTABLE, by default its name, or None."""
    return _read_text(column["colexpr"]) if "colexpr" in column else str(column["colname"])


def _text(part: Any) -> str:
    """Return the name in a part of a dotted name; empty for a star or a subscript."""
    return str(part.get("String", {}).get("sval", ""))


def _split_name(parts: list[Any]) -> Name:
    """Return a name and, if one was written, its schema. A database before that is the session's own."""
    name = parts[-1]["String"]["sval"]
    return (name, None) if len(parts) == 1 else (name, schema_of((parts[-2]["String"]["sval"], name)))
