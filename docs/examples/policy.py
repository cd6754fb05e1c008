"""A policy: nobody asks for the column `name`, whatever the database and however it is reached."""

from collections.abc import Sequence

from dragoman import Call, Database, PolicyPlugin, Statement, UnsafeSql, Validator


class NoNames(Validator):
    """Refuses statements that touch a column called name, through aliases and `*` too."""

    async def check(self, statement: Statement, call: Call) -> None:
        """Raise `UnsafeSql` when a column called name is touched."""
        touched = await call.resolve()
        for relation, column in touched.columns:
            if column == "name":
                raise UnsafeSql(f"{relation.name}.name is personal.", suggestion="Leave the column out.")


class Privacy(PolicyPlugin):
    """Adds the check to every database."""

    def further_validators(self, database: Database) -> Sequence[Validator]:
        """Return the check."""
        return [NoNames()]


plugin = Privacy()
