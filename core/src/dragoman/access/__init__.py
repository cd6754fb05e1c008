"""What callers may: roles as they are configured, compiled to decisions about tools, databases, relations and columns.

Decides and knows no database: what it decides about is enforced by the catalog, the gateway and the dialects.
"""

from dragoman.access.checking import Misfit, NamedTables, misfits
from dragoman.access.delegation import Delegation, act_for, delegations, value_of
from dragoman.access.grants import DatabaseAccess, Grants, Permission, ReadGrant
from dragoman.access.parts import as_condition, as_conditions
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
    "value_of",
]
