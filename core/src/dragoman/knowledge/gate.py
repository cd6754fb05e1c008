"""The privacy gate: decides which values of a column may be shown. Only certainly harmless values are shown."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import lru_cache

from dragoman.catalog.search import words
from dragoman.knowledge.types import family
from dragoman.model import ColumnProfile, KnowledgeSettings, Table, TableColumn

MAX_VALUES = 50
"""A column with more different values than this gets no list of them."""
MAX_NUMBERS = 12
"""Up to this many different numbers are codes. More are measurements, for which the range is enough."""
MAX_LENGTH = 40
"""The most characters of a value. Longer texts were written by people."""
FEWEST_ROWS_PER_VALUE = 5
"""A value must stand for several rows: one that stands for a single row may identify a single person."""
LOOKUP_ROWS, LOOKUP_COLUMNS = 50, 4
"""A referenced table with at most this many rows and columns is a list of kinds."""

PERSONAL = frozenset(
    "company firm employer vendor supplier extension ext cc last4 identifier identification barcode badge mail"
    " email fax phone mobile cell cellphone telephone tel msisdn skype twitter facebook instagram linkedin"
    " whatsapp telegram handle website homepage web url uri link href address addr addressline street road house"
    " apartment apt flat zip zipcode postal postcode plz lat latitude lng lon long longitude gps geo coordinate"
    " location birth birthday birthdate birthplace dob born age ssn sin nin nif cpf cnpj passport licence"
    " license iban bic swift account acct card cvv cvc pan credit salary wage income compensation bonus password"
    " passwd pwd secret token key hash salt signature session cookie nonce ip ipv4 ipv6 mac imei device agent"
    " fingerprint uuid guid login username user nickname nick alias forename firstname fname lastname lname"
    " surname middlename fullname displayname screenname initial maiden nee contact person people customer"
    " client employee patient student teacher doctor physician nurse member owner author creator editor assignee"
    " reporter reviewer approver manager supervisor boss seller buyer recipient sender attention attn spouse"
    " mother father parent child guardian next kin note comment remark memo message msg body text content"
    " description desc bio about subject title headline question answer reason detail feedback diagnosis allergy"
    " medication vat tax taxid plate vin photo picture avatar image img file filename path attachment search"
    " query referrer referer composer artist actor singer player coach driver".split()
)
"""Words in names of columns that hold personal data, secrets or free text."""
OF_KINDS = frozenset("type status kind category class flag gender method mode approved visible promotion".split())
"""Last words of names that list kinds, whatever comes before: `address_type`, `comment_status`."""
BY_SOMEBODY = frozenset({"by", "to", "from", "for"})
"""Last words of names such as `approved_by`."""
PEOPLE = frozenset(
    "user customer client employee person people patient student teacher member contact owner author actor"
    " artist staff supplier vendor company account driver agent player coach doctor physician nurse guest"
    " candidate applicant lead subscriber donor tenant resident voter citizen judge lawyer profile friend"
    " follower partner passenger pilot singer composer musician director manager seller buyer recipient sender"
    " participant attendee speaker".split()
)
"""Words in names of tables whose rows are people or firms. A name in them is never a kind."""

_TELLING = re.compile(
    r"@|https?://|www\.|\b[0-9a-f]{8}-[0-9a-f]{4}-|[0-9a-f]{16}|\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3}", re.IGNORECASE
)
"""Matches a mail address, a web address, a UUID, a long hexadecimal number, or an IBAN."""
_DIGITS = re.compile(r"\d")
MOST_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Gate:
    """Judges the profiles of one database's columns according to the configuration.

    `vetoed`: a policy changes the database's answers and does not say what it does with these values.
    """

    settings: KnowledgeSettings
    vetoed: bool = False

    def filter(
        self, table: Table, profiles: Iterable[ColumnProfile], referenced: bool = False
    ) -> dict[str, ColumnProfile]:
        """Return the part of a relation's profiles that may be shown, by column name.

        `referenced`: other keys point to it.
        """
        columns = {column.name: column for column in table.columns}
        return {
            profile.name: self._judge(table, columns[profile.name], profile, referenced)
            for profile in profiles
            if profile.name in columns and self.settings.values != "off" and not self.vetoed
        }

    def hides(self, table: Table, column: TableColumn) -> bool:
        """Return whether a column's values are never shown, whatever they are."""
        if self.vetoed or self.settings.values == "off" or _fits(table, column, self.settings.hide_values):
            return True
        return is_personal(column) and not _fits(table, column, self.settings.show_values)

    def _judge(self, table: Table, column: TableColumn, profile: ColumnProfile, referenced: bool) -> ColumnProfile:
        if _fits(table, column, self.settings.hide_values):
            return without_values(profile)
        if _fits(table, column, self.settings.show_values):
            return profile
        if is_personal(column, bare_name=_is_lookup(table, referenced)):
            return without_values(profile)
        listed = _is_lookup(table, referenced) and family(column.type) == "text"
        shown = _is_few(column, profile) and (listed or (not _is_key(table, column) and not _is_thin(table, profile)))
        return (
            profile if shown and not any(map(is_telling, profile.values)) else replace(profile, values=(), fractions=())
        )


def without_values(profile: ColumnProfile) -> ColumnProfile:
    """Return a profile without any value from a row."""
    return replace(profile, values=(), fractions=(), minimum=None, maximum=None)


def is_personal(column: TableColumn, *, bare_name: bool = False) -> bool:
    """Return whether a column's name shows that it is about people. `bare_name`: a bare `name` is one of a kind."""
    return _speaks_of_people(column.name, bare_name)


@lru_cache(maxsize=10_000)
def _speaks_of_people(name: str, bare_name: bool) -> bool:
    parts = words(name)
    if parts and parts[-1] in OF_KINDS:
        return False
    if not parts or PERSONAL & set(parts) or parts[-1] in BY_SOMEBODY or _runs_together(name):
        return True
    return "name" in parts and not bare_name


def is_telling(value: str) -> bool:
    """Return whether a value by itself may identify a person."""
    return len(value) > MAX_LENGTH or len(_DIGITS.findall(value)) > MOST_DIGITS or bool(_TELLING.search(value))


_TOGETHER = re.compile(
    r"e?mail|phone|mobile|address|passw|fname|lname|surname|username|firstname|lastname|birth|zipcode"
)


def _runs_together(name: str) -> bool:
    """Return whether a personal word is part of a name without a separator, as in `custphone`."""
    return bool(_TOGETHER.search(name.lower()))


def _is_few(column: TableColumn, profile: ColumnProfile) -> bool:
    most = {"text": MAX_VALUES, "integer": MAX_NUMBERS}.get(family(column.type), 0)
    return 0 < len(profile.values) <= most and (profile.distinct or 0) <= most


def _is_thin(table: Table, profile: ColumnProfile) -> bool:
    rows = profile.rows if profile.rows is not None else table.row_estimate
    filled = (rows or 0) * (1 - (profile.null_fraction or 0))
    return filled < FEWEST_ROWS_PER_VALUE * max(profile.distinct or 0, len(profile.values))


def _is_key(table: Table, column: TableColumn) -> bool:
    """Return whether a column identifies rows, of its own or of another relation."""
    unique = any(
        each.type in ("PRIMARY KEY", "UNIQUE") and each.columns == (column.name,) for each in table.constraints
    )
    return unique or any(column.name in key.columns for key in table.foreign_keys) or _is_number_of_key(table, column)


def _is_number_of_key(table: Table, column: TableColumn) -> bool:
    return column.name in table.primary_key and family(column.type) != "text"


def _is_lookup(table: Table, referenced: bool) -> bool:
    """Return whether a relation lists kinds of things: it is small, referenced, and not about people."""
    few = table.row_estimate is not None and table.row_estimate <= LOOKUP_ROWS and len(table.columns) <= LOOKUP_COLUMNS
    return referenced and few and not PEOPLE & set(words(table.relation.name))


def _fits(table: Table, column: TableColumn, patterns: Collection[str]) -> bool:
    relation = table.relation
    names = [part for part in (relation.catalog, relation.schema, relation.name, column.name) if part is not None]
    return any(_ends(names, pattern.lower().split(".")) for pattern in patterns)


def _ends(names: Sequence[str], parts: Sequence[str]) -> bool:
    if len(parts) > len(names):
        return False
    pairs = zip(names[-len(parts) :], parts, strict=True)
    return all(fnmatchcase(name.lower(), part) for name, part in pairs)
