"""What a query may give PostGIS as a projection.

PROJ takes a text, and opens the files and grids that the text names, in any folder of the server. No deadline ends
that.
"""

from __future__ import annotations

import re
from typing import Any

Node = dict[str, Any]

PROJECTING = frozenset({"st_transform", "st_transformpipeline"})
"""Functions whose arguments may be projections."""
INTEGER = "\0"
"""Stands for an argument that is an integer for certain. No literal has this text."""

_AUTHORITY = r"(?:EPSG|ESRI|IGNF|OGC|IAU_2015):\w{1,20}"
_URN = r"urn:ogc:def:(?:crs|coordinateOperation):EPSG:[\d.]{0,9}:\d{1,9}"
# Those that take numbers or words. Files are named by grids, nadgrids, geoidgrids, file, model, init and others.
_KEY = (
    r"proj|ellps|datum|lat_[0-3b]|lat_ts|lon_[0-3]|lonc|lon_wrap|alpha|gamma|[abfrhwmnqkxyzs]|rf|k_0|[xyz]_0|r[xyz]|zone|"
    r"south|towgs84|pm|units|to_meter|vunits|vto_meter|no_defs|wktext|type|over|axis|order|step|inv|xy_in|xy_out|z_in|"
    r"z_out|convention|sweep|azi|tilt|no_uoff|no_off|no_rot"
)
_WORD = rf"\+?(?:{_KEY})(?:=[\w.,+-]+)?|\+nadgrids=@null|\+init=epsg:\d{{1,9}}"
PROJECTION = re.compile(
    rf"(?=.{{1,500}}\Z)(?:{_AUTHORITY}|{_URN}|\s*(?:(?:{_WORD})(?:\s+|\Z))*)", re.DOTALL | re.ASCII | re.IGNORECASE
)
"""A text that names no file: the number of a projection, or PROJ's words for one."""

_SCHEMAS: tuple[list[str], ...] = ([], ["public"], ["extensions"])


def is_integer(expression: Node) -> bool:
    """Return whether an expression cannot be a text: an integer, a cast to one, arithmetic, or ST_SRID."""
    ((kind, inner),) = expression.items()
    match kind:
        case "A_Const":
            return "ival" in inner
        case "TypeCast":
            type_ = inner["typeName"]
            *schema, name = _names(type_["names"])
            return name in ("int2", "int4", "int8") and schema in ([], ["pg_catalog"]) and "arrayBounds" not in type_
        case "A_Expr":
            *schema, name = _names(inner["name"])
            return inner["kind"] == "AEXPR_OP" and name in ("+", "-", "*", "/", "%") and schema in ([], ["pg_catalog"])
        case "FuncCall":
            *schema, name = _names(inner["funcname"])
            return name == "st_srid" and schema in _SCHEMAS
        case "CoalesceExpr":
            return all(map(is_integer, inner["args"]))
        case "CaseExpr":
            results = [each["CaseWhen"]["result"] for each in inner["args"]]
            return all(map(is_integer, [*results, *([inner["defresult"]] if "defresult" in inner else [])]))
        case _:
            return False


def _names(parts: list[Any]) -> list[str]:
    return [part["String"]["sval"] for part in parts]
