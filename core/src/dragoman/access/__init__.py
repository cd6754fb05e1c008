"""What callers may do: the configured roles, compiled to decisions about tools, databases, relations and columns.

It only decides, and knows no database. The catalog, the gateway and the dialects enforce the decisions.
"""

from dragoman.access.checking import Misfit, NamedTables, misfits
from dragoman.access.delegation import Delegation, act_for, delegations, value_of
from dragoman.access.grants import DatabaseAccess, Grants, Permission, ReadGrant
from dragoman.access.parts import as_condition, as_conditions, spell_names
from dragoman.access.quotas import Quota, Quotas
from dragoman.access.restricting import Decider, Restrictions, intersect
from dragoman.access.roles import Access, Roles, has, narrow

__all__ = [
    "Access",
    "DatabaseAccess",
    "Decider",
    "Delegation",
    "Grants",
    "Misfit",
    "NamedTables",
    "Permission",
    "Quota",
    "Quotas",
    "ReadGrant",
    "Restrictions",
    "Roles",
    "act_for",
    "as_condition",
    "as_conditions",
    "delegations",
    "has",
    "intersect",
    "misfits",
    "narrow",
    "spell_names",
    "value_of",
]
