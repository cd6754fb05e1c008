"""The contents of FROM: tables, subqueries, functions that return tables, and joins."""

from __future__ import annotations

import abc

from dragoman import Relation

from dragoman_trino.grammar.found import Mention, MentionForm
from dragoman_trino.grammar.tokens import NUMBER, STRING
from dragoman_trino.grammar.windows import Windows

_JOINS = frozenset({"CROSS", "NATURAL", "INNER", "LEFT", "RIGHT", "FULL", "JOIN"})
_JOIN_WORDS = _JOINS - {"JOIN"} | {"OUTER"}
_SAMPLES = frozenset({"BERNOULLI", "SYSTEM"})
_PERIODS = frozenset({"TIMESTAMP", "VERSION"})
# Words that may be aliases, unless the next token shows that they begin a clause. None: any name follows.
_CLAUSES: dict[str, frozenset[str] | None] = {
    "COPARTITION": frozenset({"("}),
    "FETCH": frozenset({"FIRST", "NEXT"}),
    "KEEP": frozenset({"WHEN"}),
    "LIMIT": frozenset({NUMBER, "?", "ALL"}),
    "MATCH_RECOGNIZE": frozenset({"("}),
    "OFFSET": frozenset({NUMBER, "?"}),
    "PARTITION": frozenset({"BY"}),
    "PRUNE": frozenset({"WHEN"}),
    "TABLESAMPLE": _SAMPLES,
    "WINDOW": None,
}


class Relations(Windows, abc.ABC):
    """Reads relations."""

    def read_relations(self) -> None:
        """Read what follows FROM."""
        self._relation()
        while self.accept(","):
            self._relation()

    def read_alias(self, *, columns: bool = False) -> bool:
        """Read an alias if one is here, with its columns if it may have them, and return whether one was."""
        if not self.accept("AS") and (not self.at_name() or self._at_clause()):
            return False
        if columns:
            self.read_name()
            self.read_columns()
        elif self.symbol == "(":
            self.read_columns()  # of a.* AS (b, c)
        else:
            self.read_name()
        return True

    def read_relation_name(self, form: MentionForm) -> Mention | None:
        """Read the name of a relation, and record it unless WITH defines it."""
        offset = self.offset
        names = self.read_names()
        if len(names) > 3:
            self.fail()
        if len(names) == 1 and self._is_member(names[0], form):
            return None
        catalog, schema, name = (None, None, *names)[-3:]
        mention = Mention(Relation(str(name), schema, catalog), offset, offset, self.end, form)
        self.found.mentions.append(mention)
        return mention

    def _is_member(self, name: str, form: MentionForm) -> bool:
        """Return whether WITH defines the name here, and record that it was named."""
        if form == "table" and name in self.recursing:
            self.recursed = True
            return True
        if name in self.visible:
            self.note_member(self.visible[name])
            return True
        return False

    def _at_clause(self) -> bool:
        if self.symbol not in _CLAUSES:
            return False
        following = _CLAUSES[self.symbol]
        return self.ahead().name if following is None else self.ahead().symbol in following

    def _relation(self) -> None:
        """Read joined relations. The condition of a join may stand after further ones."""
        self.enter()
        self._read_sample()
        while True:
            if self.symbol in _JOINS:
                while self.accept_any(_JOIN_WORDS):
                    pass
                self.expect("JOIN")
                self._read_sample()
            elif self.accept("ON"):
                self.read_expression()
            elif self.accept("USING"):
                if self.symbol != "(":
                    self.fail()
                self.read_columns()
            else:
                break
        self.leave()

    def _read_sample(self) -> None:
        mention = self._primary()
        aliased = self.read_alias(columns=True)
        if mention is not None:
            mention.aliased = aliased
        if self.accept("MATCH_RECOGNIZE", "("):
            self.read_matching()
            self.expect(")")
            self.read_alias(columns=True)
        if self.accept("TABLESAMPLE"):
            self.expect_any(_SAMPLES)
            self.expect("(")
            self.read_expression()
            self.expect(")")

    def _primary(self) -> Mention | None:
        self.size += 1
        if self.symbol == "(" and self.opens_query():
            self.read_query_in_parentheses()
        elif self.accept("("):
            self._relation()
            self.expect(")")
        elif self.accept("UNNEST", "("):
            self.read_expressions()
            self.expect(")")
            self.accept("WITH", "ORDINALITY")
        elif self.at("LATERAL", "("):
            self.advance()
            self.read_query_in_parentheses()
        elif self.accept("TABLE", "("):
            self._table_function()
            self.expect(")")
        elif self.accept("JSON_TABLE", "("):
            self._json_table()
            self.expect(")")
        else:
            return self._table_name()
        return None

    def _table_name(self) -> Mention | None:
        mention = self.read_relation_name("table")
        if self.symbol == "FOR" and self.ahead().symbol in _PERIODS:
            self.advance(2)
            self.expect("AS", "OF")
            self.read_expression()
            if mention is not None:
                mention.form = "version"
        return mention

    # Table functions

    def _table_function(self) -> None:
        offset = self.offset
        names = self.read_names()
        self.note_call(names, offset, table=True)
        self.expect("(")
        if self.symbol not in {")", "COPARTITION"}:
            self._table_argument()
            while self.accept(","):
                self._table_argument()
        if self.accept("COPARTITION"):
            self._partners()
            while self.accept(","):
                self._partners()
        self.expect(")")

    def _partners(self) -> None:
        """Read names of arguments that are partitioned alike. They are dotted like tables, and read nothing more."""
        self.expect("(")
        self.read_names()
        while self.accept(","):
            self.read_names()
        self.expect(")")

    def _table_argument(self) -> None:
        if self.at_name() and self.ahead().symbol == "=>":
            self.advance(2)
        if self.accept("DESCRIPTOR", "("):
            self._descriptor()
        elif self.at("CAST", "(", "NULL", "AS", "DESCRIPTOR"):
            self.advance(5)
            self.expect(")")
        elif self.symbol == "TABLE":
            self._table()
        else:
            self.read_expression()

    def _descriptor(self) -> None:
        while True:
            self.read_name()
            if self.symbol not in {",", ")"}:
                self.read_type()
            if not self.accept(","):
                break
        self.expect(")")

    def _table(self) -> None:
        mention = None
        self.expect("TABLE")
        if self.symbol == "(" and self.opens_query():
            self.read_query_in_parentheses()
        else:
            self.expect("(")
            mention = self.read_relation_name("argument")
            self.expect(")")
        if mention is not None:
            mention.end = self.end
        aliased = self.read_alias(columns=True)
        if mention is not None:
            mention.aliased = aliased
        if self.accept("PARTITION", "BY") and not self.accept("(", ")"):
            self.read_expression()
        if self.symbol in {"PRUNE", "KEEP"}:
            self.advance()
            self.expect("WHEN", "EMPTY")
        if self.accept("ORDER", "BY"):
            listed = self.accept("(")
            self.read_sort()
            if listed:
                self.expect(")")

    # JSON_TABLE

    def _json_table(self) -> None:
        self.read_json_path()
        self._json_columns()
        if self.accept("PLAN"):
            self.accept("DEFAULT")
            self.expect("(")
            self._json_plan()
        self.read_json_options()

    def _json_columns(self) -> None:
        self.enter()
        self.expect("COLUMNS", "(")
        self._json_column()
        while self.accept(","):
            self._json_column()
        self.expect(")")
        self.leave()

    def _json_column(self) -> None:
        if self.symbol == "NESTED" and (self.ahead().symbol == STRING or self.ahead(2).symbol == STRING):
            self.advance()
            self.accept("PATH")
            self.expect(STRING)
            if self.accept("AS"):
                self.read_name()
            self._json_columns()
            return
        self.read_name()
        if self.accept("FOR", "ORDINALITY"):
            return
        self.read_type()
        self.read_json_format()
        if self.accept("PATH"):
            self.expect(STRING)
        self.read_json_options()

    def _json_plan(self) -> None:
        """Read names of paths and how they are joined, until the parenthesis closes."""
        depth = 1
        while depth:
            depth += {"(": 1, ")": -1}.get(self.symbol, 0)
            if not self.accept_any(_PLAN):
                self.read_name()


_PLAN = frozenset({"(", ")", ",", "OUTER", "INNER", "UNION", "CROSS"})
