"""What a query may use, as data. policy.toml decides and gives reasons; the other files apply it to each server."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import translate
from importlib.resources import files

from dragoman import Form, Rules

from dragoman_postgres.projections import INTEGER, PROJECTION
from dragoman_postgres.rules.policy import fits, patterns, read_policy, read_substitutes
from dragoman_postgres.searches import HEADLINE, MAKERS, NORMALIZERS

MAJORS = (13, 14, 15, 16, 17, 18)
"""The major versions with a list of their own. Every server is judged by all lists: it cannot call what it lacks."""


# Characters of a type in a text. Quotes, which could hide a name, are not among them.
_TYPE_TEXT = re.compile(r"[\w\s.,()\[\]]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Allowed:
    """The lists of all servers, joined. Names are as the server stores them.

    - `functions`: by plain name, including types written as functions.
    - `qualified`: by dotted name.
    - `extension_functions`, `extension_operators`: without schema, or with a usual one.
    - `refused`: functions with one argument that (value).name must not call.
    - `relations`: the system's, dotted.
    - `secret`: matches dotted names of relations that stay closed.
    - `sampling`: those of `relations` that show values in the columns `sampled`.
    - `settings`: of SHOW.
    - `telling`: patterns of functions that show an object by its name or number.
    - `naming`: types whose values are or hold names, which numbers turn into where they are mixed.
    - `constant`: those of them that may be written as a constant, with a name that has no schema, for a function in
      `searching`.
    - `searching`: functions whose first argument may be the name of a text search configuration.
    - `mixing`: functions and operators that give a literal the type of another argument, or build arrays and rows from
      it.
    - `substitutes`: what to write instead of a function of another database.
    """

    functions: frozenset[str]
    types: frozenset[str]
    qualified: frozenset[str]
    extension_functions: frozenset[str]
    operators: frozenset[str]
    extension_operators: frozenset[str]
    refused: frozenset[str]
    relations: frozenset[str]
    secret: re.Pattern[str]
    sampling: frozenset[str]
    sampled: frozenset[str]
    settings: frozenset[str]
    mixing: frozenset[str]
    telling: frozenset[str]
    naming: frozenset[str]
    constant: frozenset[str]
    searching: frozenset[str]
    substitutes: dict[str, str]

    def is_telling(self, name: str) -> bool:
        """Return whether a function, by its plain name, shows objects by name or number."""
        return fits(name, self.telling)

    def is_secret(self, dotted: str) -> bool:
        """Return whether a relation's dotted name is one that stays closed."""
        return self.secret.fullmatch(dotted) is not None


@functools.cache
def load_allowed() -> Allowed:
    """Return the shipped lists. They are read once."""
    policy = read_policy()
    servers = [_read(f"{major}.toml") for major in MAJORS]
    extensions = _read("extensions.toml")
    types = _join(server["types"] for server in servers)
    functions = _join(server["functions"] for server in servers) | types
    postgis = policy["postgis"]
    extension_functions = extensions["functions"] | set(postgis["names"].split())
    refused = _join([*(server["refused"] for server in servers), extensions["refused"]])
    return Allowed(
        functions=functions,
        types=types,
        qualified=frozenset(policy["qualified"]["names"].split()),
        extension_functions=frozenset(extension_functions),
        operators=_join(server["operators"] for server in servers),
        extension_operators=frozenset(extensions["operators"] | set(postgis["operators"].split())),
        refused=(refused | set(patterns(policy["extension-known"]))) - functions - extension_functions,
        relations=_join(server["relations"] for server in servers),
        secret=re.compile("|".join(map(translate, patterns(policy["secret"])))),
        sampling=frozenset(policy["sampling"]["relations"].split()),
        sampled=frozenset(policy["sampling"]["columns"].split()),
        settings=frozenset(policy["settings"]["names"].split()),
        mixing=frozenset(policy["mixing"]["names"].split()),
        telling=frozenset(patterns(policy["telling"])),
        naming=_naming(policy["naming"]),
        constant=frozenset(policy["naming"]["constant"].split()),
        searching=frozenset(policy["searching"]["names"].split()),
        substitutes=read_substitutes(policy["substitutes"]),
    )


def _naming(policy: Mapping[str, str]) -> frozenset[str]:
    """Return the types that are or hold names, and those of their arrays."""
    types = f"{policy['names']} {policy['rows']}".split()
    return frozenset(name for type_ in types for name in (type_, f"_{type_}"))


_OF_EXTENSIONS = ("", "public.", "extensions.")

# No deadline ends these functions, so their work per character, or per node, must be small.
_SHORT = re.compile(r".{0,100}", re.DOTALL)
# What may stand in brackets: a place, or a child or attribute, there or with a value.
_CONDITION = r"""\[(?:\d+|last\(\)|@?[\w-]+(?::[\w-]+)?(?:\s*=\s*(?:'[^']*'|"[^"]*"|\d+))?)\]"""
# Only at its beginning may a path go up: nodes of many children are compared with all nodes found before.
_STEPS = rf"(?:\.\.(?:/(?!/)|(?=\)?\Z)))*(?:[\w/@*-]|\.(?!\.)|:(?!:)|{_CONDITION}|(?:text|node)\(\))*"
_OF_NODES = "string|number|boolean|count|sum|name|local-name|normalize-space|string-length"
_PLAIN_PATH = re.compile(rf"(?=.{{1,200}}\Z)(?!.*//.*//)(?:{_STEPS}|(?:{_OF_NODES})\({_STEPS}\))")
# Each fragment of a headline is chosen among all places of the text.
_FRAGMENTS = r"""maxfragments"?\s*=\s*["']?\d{1,2}["']?\s*(?=,|\Z)"""
_HEADLINE = re.compile(rf"(?=.{{0,1000}}\Z)(?:(?!maxfragments).|{_FRAGMENTS})*", re.DOTALL | re.IGNORECASE)
# Of PostGIS: how many parts each arc or segment gets. Small ones are ended, by the parts that come after them.
_FEW = re.compile(r"\d{1,3}")
_STYLE = re.compile(
    r"(?:\s*(?:quad_segs=\d{1,3}|(?:endcap|join|side)=[a-z]+|mit(?:re|er)_limit=\d{1,3}(?:\.\d{1,9})?)\b)*\s*"
)
_FRACTION = re.compile(r"0?\.\d?[1-9]\d{0,20}|1(?:\.0*)?")
_WORD = re.compile(r"[A-Za-z_]\w*")
_SRID = re.compile(INTEGER)
# Of a raster, the number of a projection has up to four arguments behind it.
_TO_SRID: tuple[Form, ...] = tuple((None, _SRID, *(None,) * more) for more in range(5))
_OF_POSTGIS: Mapping[str, tuple[Form, ...]] = {
    "st_transform": (*_TO_SRID, (None, PROJECTION), (None, PROJECTION, PROJECTION), (None, PROJECTION, _SRID)),
    "st_transformpipeline": ((None, PROJECTION), (None, PROJECTION, _SRID)),
    "st_buffer": ((None, None), (None, None, _FEW), (None, None, _STYLE)),
    "st_offsetcurve": ((None, None), (None, None, _STYLE)),
    "st_hausdorffdistance": ((None, None), (None, None, _FRACTION)),
    "st_frechetdistance": ((None, None), (None, None, _FRACTION)),
    "st_geohash": ((None,), (None, _FEW)),
    # Of a geometry with digits and options, or of a row with a column and digits.
    "st_asgeojson": ((None,), (None, None), (None, _FEW, _FEW), (None, _WORD, _FEW), (None, _WORD, _FEW, None)),
}


def rules() -> Rules:
    """Return the lists as the core's rules."""
    lists = load_allowed()
    setting = re.compile("|".join(map(re.escape, lists.settings)), re.IGNORECASE)
    forms: dict[str, tuple[Form, ...]] = {
        "ts_rewrite": ((_SHORT, _SHORT, _SHORT),),  # with two arguments, the second is a query given as text
        "ts_match_tt": ((None, _SHORT),),
        HEADLINE: ((None, None), (None, None, _HEADLINE), (None, None, None, _HEADLINE)),
        **dict.fromkeys(NORMALIZERS, ((_SHORT,), (_SHORT, None))),
        **dict.fromkeys(MAKERS, ((_SHORT,), (None, _SHORT))),
        "current_setting": ((setting,), (setting, None)),
        "pg_input_is_valid": ((None, _TYPE_TEXT),),
        "pg_input_error_info": ((None, _TYPE_TEXT),),
        **dict.fromkeys(("btrim", "ltrim", "rtrim"), ((None,), (None, _SHORT))),
        "translate": ((None, _SHORT, None),),
        **dict.fromkeys(("xpath", "xpath_exists"), ((_PLAIN_PATH, None), (_PLAIN_PATH, None, None))),
        "xmlexists": ((_PLAIN_PATH, None),),
        "xmltable": ((_PLAIN_PATH,),),
    }
    extensions = lists.extension_functions - forms.keys() - _OF_POSTGIS.keys()
    return Rules(
        functions=_anywhere(lists.functions - forms.keys(), extensions) | lists.qualified,
        forms={
            **{f"{schema}{name}": form for name, form in forms.items() for schema in ("", "pg_catalog.")},
            **{f"{schema}{name}": form for name, form in _OF_POSTGIS.items() for schema in _OF_EXTENSIONS},
        },
        substitutes=lists.substitutes
        | {name: f"{name}(left(the text, 10000))" for name in MAKERS}
        | {
            "normalize": "normalize(left(the text, 10000))",
            "is_normalized": "left(the text, 10000) IS NORMALIZED",
            "tsquery": "left(the text, 10000)::tsquery",
            "ts_match_tt": "the_left::tsvector @@ the_right",
            HEADLINE: "ts_headline('english', the text, to_tsquery('a & b'), 'MaxFragments=10')",
            **dict.fromkeys(("xpath", "xpath_exists"), "a path such as xpath('/a/b[@c=\"x\"]/text()', the text)"),
            "xmlexists": "a path such as xmlexists('/a/b[@c=1]' PASSING the text)",
            "xmltable": "a path such as FROM XMLTABLE('/a/b[1]' PASSING x COLUMNS c text PATH '@c')",
            "st_buffer": "st_buffer(geom, radius, 8)",
            "st_offsetcurve": "st_offsetcurve(geom, distance, 'quad_segs=8')",
            "st_hausdorffdistance": "st_hausdorffdistance(geom1, geom2, 0.1)",
            "st_frechetdistance": "st_frechetdistance(geom1, geom2, 0.1)",
            "st_asgeojson": "st_asgeojson(geom, 9, 0)",
            "st_geohash": "st_geohash(geom, 9)",
            "st_transform": "st_transform(geom, srid::integer), or st_transform(geom, 'EPSG:3857')",
            "st_transformpipeline": "st_transformpipeline(geom, 'urn:ogc:def:coordinateOperation:EPSG::16031')",
        },
        refused_attributes=lists.refused | MAKERS | NORMALIZERS,
        operators=_anywhere(lists.operators, lists.extension_operators),
        refused_relations=(lists.secret,),
        system_schemas=frozenset({"pg_catalog", "information_schema"}),
        system_relations=lists.relations,
        telling=_telling(lists),
        telling_path=_telling_path(lists),
        types=(lists.types | _OTHER_TYPES) - {"regclass", "regtype"},
    )


# Names that are not functions of one argument, or whose functions are listed as such.
_OTHER_TYPES = frozenset("box int2vector line lseg name oidvector point record".split())
# A name without a schema is looked up only in the visible schemas and the system's.
_OBJECT = re.compile(r"(?:pg_catalog\.)?[a-z_][a-z0-9_$]*")
_CONFIGURATION = re.compile(rf"\*|{_OBJECT.pattern}")
# A reg* type reads the name of an object in any schema.
_OWN_TYPE = re.compile(r"(?!\s*reg)[\w\s,()\[\]]+", re.ASCII | re.IGNORECASE)


def _telling(lists: Allowed) -> Mapping[str, tuple[Form, ...]]:
    """Return the functions that show objects, and the arguments with which they do not."""
    anything = tuple((None,) * count for count in range(5))
    forms: dict[str, tuple[Form, ...]] = {name: () for name in lists.functions if lists.is_telling(name)}
    forms |= dict.fromkeys(lists.naming, ()) | dict.fromkeys(lists.constant, ((_OBJECT,),))
    forms |= {name: (*anything[:2], *((_CONFIGURATION, *rest) for rest in anything[1:])) for name in lists.searching}
    for name, free in (("ts_headline", 2), ("json_to_tsvector", 2), ("jsonb_to_tsvector", 2)):
        forms[name] = (*forms[name], anything[free])
    forms |= dict.fromkeys(("pg_input_is_valid", "pg_input_error_info"), ((None, _OWN_TYPE),))
    # An extension may be in any schema.
    others = {f"*.{name}": () for name in lists.extension_functions - lists.functions if lists.is_telling(name)}
    return forms | {f"pg_catalog.{name}": form for name, form in forms.items()} | others


def _telling_path(lists: Allowed) -> Mapping[str, tuple[Form, ...]]:
    """Return the functions that tell the search path, and the arguments with which they do not."""
    setting = re.compile("|".join(map(re.escape, sorted(lists.settings - {"search_path"}))), re.IGNORECASE)
    forms: dict[str, tuple[Form, ...]] = {"current_schema": (), "current_schemas": ()}
    forms["current_setting"] = ((setting,), (setting, None))
    return forms | {f"pg_catalog.{name}": form for name, form in forms.items()}


def _anywhere(own: frozenset[str], extensions: frozenset[str]) -> frozenset[str]:
    """Return names with the schemas they may have. Anybody's overload of a system name may be in public."""
    return frozenset(
        own
        | {f"pg_catalog.{name}" for name in own}
        | extensions
        | {f"extensions.{name}" for name in extensions}
        | {f"public.{name}" for name in extensions - own}
    )


def _join(lists: Iterable[Iterable[str]]) -> frozenset[str]:
    return frozenset(word for words in lists for word in words)


def _read(name: str) -> dict[str, set[str]]:
    lists = tomllib.loads((files(__name__) / name).read_text(encoding="utf-8"))
    return {key: set(words.split()) for key, words in lists.items()}
