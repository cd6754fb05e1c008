"""The walk over a tree of PostgreSQL's grammar: every node and every field must be one that a query may have.

A tree is JSON: an object whose key begins with a capital is a node, every other key is a field of one. What is not
listed below is refused, so that a later grammar cannot bring in what nobody has looked at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from typing import Any

from dragoman import Database, Relation, UnsafeSql, WriteDenied

from dragoman_postgres.rules import allowed
from dragoman_postgres.samples import Samples

Names = frozenset[str]
Node = dict[str, Any]

# Nodes and fields that are walked through: expressions, clauses and what joins them.
_THROUGH = (
    # Nodes of queries
    "SelectStmt ResTarget WindowDef SortBy GroupingSet GroupingFunc List RangeSubselect RangeFunction RangeTableFunc"
    " RangeTableFuncCol RangeTableSample JoinExpr ColumnDef CTESearchClause CTECycleClause"
    # Nodes of expressions
    " A_Expr A_ArrayExpr A_Indirection A_Indices BoolExpr NullTest BooleanTest CaseExpr CaseWhen CoalesceExpr"
    " MinMaxExpr RowExpr SubLink NamedArgExpr TypeCast TypeName CollateClause SQLValueFunction XmlExpr XmlSerialize"
    " JsonObjectConstructor JsonArrayConstructor JsonArrayQueryConstructor JsonObjectAgg JsonArrayAgg JsonFuncExpr"
    " JsonTable JsonTableColumn JsonTablePathSpec JsonKeyValue JsonValueExpr JsonArgument JsonIsPredicate JsonParseExpr"
    " JsonScalarExpr JsonSerializeExpr JsonBehavior JsonOutput JsonFormat"
    # Fields of queries
    " distinctClause targetList fromClause whereClause groupClause havingClause windowClause valuesLists sortClause"
    " limitOffset limitCount larg rarg val node relation subquery functions items docexpr rowexpr namespaces columns"
    " colexpr coldefexpr repeatable quals content partitionClause orderClause startOffset endOffset alias over"
    " ctequery search_clause cycle_clause cycle_mark_value cycle_mark_default coldeflist collClause join_using_alias"
    # Fields of expressions
    " arg args lexpr rexpr testexpr subselect expr result defresult elements lidx uidx typeName typmods named_args"
    " agg_order agg_filter context_item pathspec passing output on_empty on_error exprs key value raw_expr string query"
    " constructor returning format"
)
# What holds nothing but facts: literals, names that run nothing, flags, places.
_SKIPPED = (
    "A_Const A_Star ParamRef String Integer Float Boolean BitString"
    " fields funcname relname schemaname catalogname inh relpersistence"
    " location name_location name kind op all groupDistinct limitOption indirection"
    " boolop nulltesttype booltesttype argisrow subLinkType refname frameOptions"
    " sortby_dir sortby_nulls is_slice lateral ordinality is_rowsfrom for_ordinality is_not_null colname is_local"
    " jointype isNatural usingClause aliasname colnames collname row_format typmod xmloption indent"
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
_BY_OPERATORS = "Write OPERATOR(pg_catalog.name) or the plain operator. Its operator can allow it with allow_functions."


class Walk:
    """One walk over one query, and what it found, as written, in no particular order.

    `plain` and `operators`: the functions and operators that may be others than pg_catalog's, by what is written;
    `attributes`: the b of a.b; `singles`: that of (a).b; with a function in FROM, a.b counts as that too. `types`:
    what is cast to.
    """

    def __init__(self, database: Database | None) -> None:
        self._rules = allowed()
        self._functions = _lower(database.allow_functions if database else ())
        self._open = _lower(database.allow_relations if database else ())
        self._names: Names = frozenset()
        self._scopes: list[tuple[Node, Names]] = []
        self._waiting: list[Node] = []
        self.relations: dict[Relation, None] = {}
        self.functions: dict[str, None] = {}
        self.plain: set[str] = set()
        self.operators: set[str] = set()
        self.attributes: set[str] = set()
        self.singles: set[str] = set()
        self.types: set[str] = set()
        self.calls_in_from = False
        self._samples = Samples()

    def run(self, query: Node) -> None:
        """Walk through a SELECT. Raises `WriteDenied` or `UnsafeSql`, with offsets in bytes."""
        self._scopes.append((query, frozenset()))
        while self._scopes:
            node, self._names = self._scopes.pop()
            self._enter(node)
        self._samples.check()

    def _enter(self, node: Node) -> None:
        """Walk through what sees the same names."""
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
        """Leave a query with a WITH clause, and that clause's members, for later: they see other names."""
        clause, names = node["withClause"], self._names
        members = [item["CommonTableExpr"] for item in clause["ctes"]]
        every = names | {member["ctename"] for member in members}
        self._scopes.append(({key: value for key, value in node.items() if key != "withClause"}, every))
        for member in members:
            self._check_member(member)
            inner = {key: value for key, value in member.items() if key not in _MEMBER_FACTS}
            self._scopes.append((inner, every if clause.get("recursive") else names))
            # Without RECURSIVE a member sees those before it: its own name there means a relation of that name.
            names |= {member["ctename"]}

    def _check_member(self, member: Node) -> None:
        (kind,) = member["ctequery"]
        if kind != "SelectStmt":
            what = _WORDS.get(kind, kind)
            raise WriteDenied(
                f"WITH holds {what}, which is not a query.",
                suggestion="Only queries may stand within WITH.",
                offset=member.get("location"),
            )

    # Steps: what is checked when a key is met.

    def relation(self, node: Node, key: str) -> None:
        """Check a relation and keep it, unless it is a name that WITH defines."""
        var = node[key]
        name, schema = var["relname"], var.get("schemaname")
        if schema is None and name in self._names:
            return
        if schema is None and (f"pg_catalog.{name}" in self._rules.relations or name.startswith("pg_")):
            # The system's schema is searched before any other.
            schema = "pg_catalog"
        self._check_relation(name, schema, var.get("location"))
        self._samples.relation(f"{schema}.{name}", var.get("location"))
        self.relations[Relation(name, schema, var.get("catalogname"))] = None

    def _check_relation(self, name: str, schema: str | None, offset: int | None) -> None:
        dotted = f"{schema or 'public'}.{name}"
        if dotted in self._open or (schema in (None, "pg_catalog") and name in self._open):
            return
        system = schema in ("pg_catalog", "information_schema")
        if self._rules.is_secret(dotted) or (system and dotted not in self._rules.relations):
            raise UnsafeSql(
                f"The relation {dotted if schema else name} is not open to queries.",
                suggestion="Query what list_tables shows. Its operator can allow it with allow_relations.",
                offset=offset,
            )

    def function(self, node: Node, key: str) -> None:
        """Check a call by name."""
        call = node[key]
        *qualifiers, name = _strings(call["funcname"])
        schema = qualifiers[-1] if qualifiers else None
        dotted = f"{schema}.{name}" if schema else name
        self.functions[dotted.removeprefix("pg_catalog.")] = None
        if schema != "pg_catalog" and dotted not in self._functions:
            self.plain.add(name)
        if not self._may_call(schema, name, dotted) and not self._is_harmless(name, call.get("args", ())):
            raise UnsafeSql(
                f"The function {dotted} is not on the list of functions known to be harmless.",
                suggestion=self._instead_of(name),
                offset=call.get("location"),
            )

    def _may_call(self, schema: str | None, name: str, dotted: str) -> bool:
        rules = self._rules
        return (
            (schema in (None, "pg_catalog") and name in rules.functions)
            or (schema in (None, *_usual(name, rules.functions)) and name in rules.extension_functions)
            or dotted in rules.qualified
            or dotted in self._functions
            or (schema == "public" and name in self._functions)
        )

    def _is_harmless(self, name: str, arguments: list[Any]) -> bool:
        """Whether a refused name is harmless with just these arguments."""
        if name == "ts_rewrite":  # with two, the second is a query given as text
            return len(arguments) == 3
        if name == "current_setting" and arguments:
            return _literal(arguments[0]).lower() in self._rules.settings
        if name in ("pg_input_is_valid", "pg_input_error_info") and len(arguments) == 2:
            return self._names_type(_literal(arguments[1]))
        return False

    def _names_type(self, text: str) -> bool:
        """Whether a text names a type plainly; its words are kept as if it were cast to."""
        self.types.update(_TYPE_WORD.findall(text.lower()))
        return _TYPE_TEXT.fullmatch(text) is not None

    def _instead_of(self, name: str) -> str:
        near = get_close_matches(name, self._rules.functions, n=3)
        hint = f"Did you mean {', '.join(near)}? " if near else "Write the query without it. "
        return f"{hint}Its operator can allow it with allow_functions."

    def column(self, node: Node, key: str) -> None:
        """Check a.b: where a has no column b, b is called as a function of a."""
        fields = node[key]["fields"]
        self._samples.columns.add(fields[-1].get("String", {}).get("sval", "*"))
        if len(fields) > 1:
            self.attributes.add(fields[-1].get("String", {}).get("sval", ""))
            self._check_projection(fields[-1], node[key].get("location"))

    def alias(self, node: Node, key: str) -> None:
        """Keep what a relation is called; with its columns renamed, anything may be any of them."""
        self._samples.rows.add(node[key]["aliasname"])
        if "colnames" in node[key]:
            self._samples.columns.add("*")

    def indirection(self, node: Node, key: str) -> None:
        """Check (a).b, as in `column`."""
        for item in node[key]["indirection"]:
            self.singles.add(item.get("String", {}).get("sval", ""))
            self._check_projection(item, node[key]["arg"].get("location"))
            if "A_Indices" in item:
                self._waiting.append(item)

    def _check_projection(self, item: Node, offset: int | None) -> None:
        name = item.get("String", {}).get("sval")
        if name in self._rules.refused and name not in self._functions:
            raise UnsafeSql(
                f"A column {name} would be a call of the function of that name, which is refused.",
                suggestion="Rename the column in a subquery: SELECT x AS other_name.",
                offset=offset,
            )

    def operator(self, node: Node, key: str) -> None:
        """Check the operator of an expression."""
        expression = node[key]
        kind = expression["kind"]
        if kind in _BETWEEN:
            self.operators.update(_BETWEEN[kind])
        else:
            self._check_operator(expression.get("name", ()), expression.get("location"))

    def case(self, node: Node, key: str) -> None:
        """Keep in mind that CASE a WHEN b compares."""
        if "arg" in node[key]:
            self.operators.add("=")

    def join(self, node: Node, key: str) -> None:
        """Keep in mind that USING and NATURAL compare."""
        if "usingClause" in node[key] or "isNatural" in node[key]:
            self.operators.add("=")

    def membership(self, node: Node, key: str) -> None:
        """Keep in mind that IN compares."""
        if node[key]["subLinkType"] == "ANY_SUBLINK" and "operName" not in node[key]:
            self.operators.add("=")

    def using(self, node: Node, key: str) -> None:
        """Check the operator of ORDER BY x USING op, or of a comparison with a subquery."""
        self._check_operator(node[key], node.get("location"))

    def _check_operator(self, parts: Any, offset: int | None) -> None:
        if not parts:
            return
        *qualifiers, name = _strings(parts)
        schema = qualifiers[-1] if qualifiers else None
        rules, dotted = self._rules, f"{schema}.{name}" if schema else name
        if schema != "pg_catalog" and dotted not in self._functions:
            self.operators.add(name)
        if not (
            (schema in (None, "pg_catalog") and name in rules.operators)
            or (schema in (None, *_usual(name, rules.operators)) and name in rules.extension_operators)
            or dotted in self._functions
        ):
            raise UnsafeSql(
                f"The operator {dotted} is not on the list of operators known to be harmless.",
                suggestion=_BY_OPERATORS,
                offset=offset,
            )

    def json(self, node: Node, key: str) -> None:
        """Keep in mind that servers before this grammar take JSON's words for functions of anybody's."""
        self.plain.update(_JSON_WORDS[key])

    def type(self, node: Node, key: str) -> None:
        """Keep the name of a type."""
        *schema, name = _strings(node[key]["names"])
        if schema != ["pg_catalog"]:
            self.types.add(name)

    def table_function(self, node: Node, key: str) -> None:
        """Keep in mind that a name in FROM may be a value of any type."""
        self.calls_in_from = True

    def sample(self, node: Node, key: str) -> None:
        """Check the method of TABLESAMPLE."""
        *schema, name = _strings(node[key])
        if name not in ("bernoulli", "system") or schema not in ([], ["pg_catalog"]):
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
# The words of a type as text; quotes, which could hide a name, are not among them.
_TYPE_TEXT = re.compile(r"[\w\s.,()\[\]]+", re.ASCII)
_TYPE_WORD = re.compile(r"\w+", re.ASCII)
_MEMBER_FACTS = frozenset({"ctename", "aliascolnames", "ctematerialized", "location", "cterecursive"})


def _through(walk: Walk, node: Node, key: str) -> None:
    """Nothing to check."""


def _unknown(walk: Walk, node: Node, key: str) -> None:
    raise UnsafeSql(
        f"The statement holds a construct that is not on the list of harmless ones ({key}).",
        suggestion="Write the query without it.",
        offset=node[key].get("location") if isinstance(node[key], dict) else None,
    )


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
    "RangeVar": Walk.relation,
    "FuncCall": Walk.function,
    "ColumnRef": Walk.column,
    "alias": Walk.alias,
    "A_Indirection": Walk.indirection,
    **dict.fromkeys(_JSON_WORDS, Walk.json),
    "A_Expr": Walk.operator,
    "CaseExpr": Walk.case,
    "JoinExpr": Walk.join,
    "SubLink": Walk.membership,
    "typeName": Walk.type,
    "RangeFunction": Walk.table_function,
    "operName": Walk.using,
    "useOp": Walk.using,
    "method": Walk.sample,
    "intoClause": Walk.into,
    "lockingClause": Walk.lock,
}


def _literal(argument: Any) -> str:
    """The text of a literal; empty for whatever else."""
    return str(argument.get("A_Const", {}).get("sval", {}).get("sval", ""))


def _strings(parts: list[Any]) -> Iterator[str]:
    return (part["String"]["sval"] for part in parts)


def _usual(name: str, own: frozenset[str]) -> tuple[str, ...]:
    """The schemas that well-known extensions are installed in; anybody's overload of an own name may be in public."""
    return ("extensions",) if name in own else ("extensions", "public")


def _lower(names: Any) -> frozenset[str]:
    return frozenset(name.lower() for name in names)
