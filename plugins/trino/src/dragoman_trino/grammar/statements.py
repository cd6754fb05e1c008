"""Statements: queries, EXPLAIN, and statements that only inspect."""

from __future__ import annotations

from dragoman import WriteDenied

from dragoman_trino.grammar.found import Found
from dragoman_trino.grammar.queries import Queries
from dragoman_trino.grammar.tokens import END, STRING

_PLANS = {
    "TYPE": frozenset({"LOGICAL", "DISTRIBUTED", "VALIDATE", "IO"}),
    "FORMAT": frozenset({"TEXT", "GRAPHVIZ", "JSON"}),
}
_IN = frozenset({"FROM", "IN"})
_CREATED = frozenset({"TABLE", "VIEW", "FUNCTION"})


class Statements(Queries):
    """Reads one statement: a query, EXPLAIN of one, SHOW or DESCRIBE."""

    def read(self) -> Found:
        """Read it to its end and return what it touches.

        Raises `InvalidSql` for any other statement or a text that does not parse, `UnsafeSql` for WITH FUNCTION and
        WITH SESSION, `WriteDenied` for words that are reserved for writes. Even then, `found` has what was read so far.
        """
        match self.symbol:
            case "EXPLAIN":
                self._explain()
            case "SHOW":
                self._show()
            case "DESCRIBE" | "DESC":
                self._describe()
            case _:
                self.read_query()
        if self.symbol != END:
            self.fail()
        return self.found

    def _explain(self) -> None:
        self.expect("EXPLAIN")
        if self.symbol == "ANALYZE":
            raise WriteDenied(
                "EXPLAIN ANALYZE runs the query.",
                suggestion="Use explain_query with analyze=true.",
                offset=self.offset,
            )
        if self.symbol == "(" and self.ahead().symbol in _PLANS:
            self.advance()
            self._plan()
            while self.accept(","):
                self._plan()
            self.expect(")")
        self.read_query()

    def _plan(self) -> None:
        values = _PLANS.get(self.symbol)
        if values is None:
            self.fail()
        self.advance()
        self.expect_any(values)

    # Inspection

    def _describe(self) -> None:
        self.advance()
        if self.symbol in {"INPUT", "OUTPUT"} and self.ahead().name:
            self.fail()
        self.read_relation_name("shown")

    def _show(self) -> None:
        self.expect("SHOW")
        if self.accept("SESSION"):
            self._like()
        elif self.accept("FUNCTIONS"):
            if self.accept_any(_IN):
                self._schema_name()
            self._like()
        elif self.accept("TABLES"):
            if self.accept_any(_IN):
                self._schema_name()
            else:
                self.found.schemas.append((None, None))
            self._like()
        elif self.accept("COLUMNS"):
            self.expect_any(_IN)
            self.read_relation_name("shown")
            self._like()
        elif self.accept("CREATE"):
            self._creation()
        elif self.accept("STATS", "FOR"):
            if self.symbol == "(":
                self.read_query_in_parentheses()
            else:
                self.read_relation_name("shown")
        elif self.accept("GRANTS", "ON"):
            self.accept("TABLE")
            self.read_relation_name("shown")
        else:
            self._everything()

    def _everything(self) -> None:
        """Record that the statement shows catalogs, schemas and rights anywhere."""
        self.found.lists_schemas = True
        if self.accept("CATALOGS"):
            self._like()
        elif self.accept("SCHEMAS"):
            self._in_catalog()
            self._like()
        elif self.accept("ROLES") or self.accept("CURRENT", "ROLES") or self.accept("ROLE", "GRANTS"):
            self._in_catalog()
        else:
            self.expect("GRANTS")

    def _in_catalog(self) -> None:
        if self.accept_any(_IN):
            self.read_name()

    def _creation(self) -> None:
        if self.accept("SCHEMA"):
            self._schema_name()
        elif self.accept("MATERIALIZED", "VIEW") or self.accept_any(_CREATED):
            self.read_relation_name("shown")
        else:
            self.fail()

    def _schema_name(self) -> None:
        names = self.read_names()
        if len(names) > 2:
            self.fail()
        catalog, schema = (None, *names)[-2:]
        self.found.schemas.append((catalog, schema))

    def _like(self) -> None:
        if self.accept("LIKE"):
            self.expect(STRING)
            if self.accept("ESCAPE"):
                self.expect(STRING)
