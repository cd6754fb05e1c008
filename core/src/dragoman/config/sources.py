"""The sources of values: the file, `.env` and the environment. Each is a layer of the same structure."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from dragoman.config.keys import TOP
from dragoman.config.readers import is_list, is_mapping, suggest
from dragoman.config.secrets import SecretError, Secrets, is_encrypted
from dragoman.errors import ConfigurationError

KeyPath = tuple[str, ...]

SUFFIXES = (".toml", ".yaml", ".yml")
PREFIX = "DRAGOMAN_"
CONFIG_VARIABLE = "DRAGOMAN_CONFIG"
URL_VARIABLE = "DATABASE_URL"


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of one key: its place, a description, and a remedy. `line`: from 1, if a file shows it."""

    file: str
    key: str
    message: str
    remedy: str = ""
    line: int | None = None

    @property
    def sentence(self) -> str:
        """The problem as a sentence, without its remedy."""
        place = f"{self.file}:{self.line}" if self.line else self.file
        return ": ".join(part for part in (place, self.key, f"{self.message.rstrip('.')}.") if part)


def problems_error(problems: Sequence[Problem]) -> ConfigurationError:
    """Return an error with all problems. Its context lists them as `asdict` has them."""
    context = {"problems": [asdict(each) for each in problems]}
    if len(problems) == 1:
        return ConfigurationError(problems[0].sentence, suggestion=problems[0].remedy, context=context)
    lines = [f"- {each.sentence} {each.remedy}".rstrip() for each in problems]
    return ConfigurationError("\n".join([f"The configuration has {len(lines)} problems:", *lines]), context=context)


@dataclass(frozen=True, slots=True)
class Layer:
    """The values of one source, nested as in a file. `names`: how keys are spelled there, if not as dotted paths."""

    origin: str
    values: Mapping[str, Any]
    folder: Path
    names: Mapping[KeyPath, str] = field(default_factory=dict[KeyPath, str])

    def spell(self, path: KeyPath) -> str:
        """Return the key of `path` as the user wrote it."""
        return self.names.get(path) or ".".join(path)


# Finding the file


def find(explicit: str | Path | None, environ: Mapping[str, str], folder: Path) -> tuple[Path, str] | None:
    """Return the configuration file and its name for messages: the first file that exists.

    Raises `ConfigurationError` if a named file does not exist.
    """
    asked = explicit or environ.get(CONFIG_VARIABLE)
    if asked:
        path = folder / os.path.expanduser(asked)
        if not os.path.isfile(path):  # nor is one whose name is too long for the system
            raise ConfigurationError(
                f"There is no configuration file {asked}.",
                suggestion="Check --config and DRAGOMAN_CONFIG, or write a starter file with `dragoman config init`.",
            )
        return path, str(asked)
    home = _user_folder(environ)
    places = [(folder, ""), (home, f"{home.name}/")]
    for place, shown in places:
        for suffix in SUFFIXES:
            if os.path.isfile(path := place / f"dragoman{suffix}"):  # a folder without access counts as having none
                return path, f"{shown}{path.name}"
    return None


def _user_folder(environ: Mapping[str, str]) -> Path:
    if given := environ.get("XDG_CONFIG_HOME"):
        return Path(given) / "dragoman"
    return _home(environ) / ("Library/Application Support" if sys.platform == "darwin" else ".config") / "dragoman"


def _home(environ: Mapping[str, str]) -> Path:
    try:
        return Path(environ["HOME"]) if environ.get("HOME") else Path.home()
    except RuntimeError:  # a user without an entry in the system's list; container runtimes say the same then
        return Path("/")


def key_file(environ: Mapping[str, str]) -> Path:
    """Return the path of the key for encrypted secrets."""
    return _user_folder(environ) / "key"


# The file


def read_file(path: Path, shown: str) -> dict[str, Any]:
    """Return the contents of a TOML or YAML file. Raises `ConfigurationError`, which never repeats the file's text."""
    try:
        content = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise ConfigurationError(f"{shown} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"{shown} is not UTF-8 text.") from None
    values = (
        _parse_toml(content, shown) if path.suffix.lower() not in (".yaml", ".yml") else _parse_yaml(content, shown)
    )
    return _without_nulls(values)


def _parse_toml(content: str, shown: str) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(content)
    except tomllib.TOMLDecodeError as error:
        found = _TOML_PLACE.search(str(error))
        message = f"not valid TOML: {error}"
        raise problems_error([Problem(shown, "", message, _TOML_REMEDY, int(found[1]) if found else None)]) from None
    except (ValueError, RecursionError):  # a number of thousands of digits, or hundreds of nested lists
        raise problems_error([Problem(shown, "", "not valid TOML: a value is too long or too deep", "")]) from None


_TOML_PLACE = re.compile(r"\(at line (\d+), column \d+\)$")
_TOML_REMEDY = "Texts need quotes; a section starts with [server] or [databases.NAME]."


def _parse_yaml(content: str, shown: str) -> dict[str, Any]:
    import yaml

    try:
        values = yaml.load(content, Loader=_yaml_loader())
    except yaml.MarkedYAMLError as error:
        # The parser's message may repeat a value: `password: *name` is an alias to it.
        mark = error.problem_mark
        where = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
        line = mark.line + 1 if mark else None
        raise problems_error([Problem(shown, "", f"not valid YAML{where}", _YAML_REMEDY, line)]) from None
    except (yaml.YAMLError, ValueError, RecursionError):
        raise ConfigurationError(f"{shown} is not valid YAML.", suggestion=_YAML_REMEDY) from None
    if values is None:
        return {}
    if not is_mapping(values):
        raise ConfigurationError(f"{shown} holds no table of keys.", suggestion="Start with `databases:`.")
    return dict(values)


_YAML_REMEDY = "Put texts with special characters into quotes; give every key once."


def _yaml_loader() -> Any:
    """Return a loader that refuses a duplicate key, as TOML does, and a value that contains itself."""
    import yaml

    class Loader(yaml.SafeLoader):
        def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
            node = super().compose_node(parent, index)
            if node is not None and node.end_mark is None:  # an alias of what is not yet complete
                raise yaml.constructor.ConstructorError(None, None, "a value that contains itself", node.start_mark)
            return node

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
            seen: set[str] = set()
            for key, _ in node.value:
                if not isinstance(key, yaml.ScalarNode) or key.value in seen:
                    raise yaml.constructor.ConstructorError(None, None, "no key, or one twice", key.start_mark)
                seen.add(key.value)
            return super().construct_mapping(node, deep)

    return Loader


def _without_nulls(values: Mapping[Any, Any]) -> dict[str, Any]:
    """Drop empty YAML values, which count as not given. Keys become text."""
    given = {str(key): value for key, value in values.items() if value is not None}
    return {key: _without_nulls(value) if is_mapping(value) else value for key, value in given.items()}


# Interpolation

_REFERENCE = re.compile(
    r"\$\$|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<default>:-(?P<text>[^}]*))?\}"
    r"|\$\{(?P<scheme>[a-z][a-z0-9+.-]*):(?P<reference>[^}]+)\}|(?P<bad>\$\{)"
)


@dataclass(frozen=True, slots=True)
class Interpolated:
    """A layer with its references replaced, their problems, and the variables that were read.

    `secrets`: the keys whose values came from a file, a store or an encrypted text.
    """

    layer: Layer
    problems: list[Problem]
    variables: list[str]
    secrets: list[KeyPath]


def interpolate(layer: Layer, environ: Mapping[str, str]) -> Interpolated:
    """Replace `${NAME}`, `${NAME:-default}`, `${SCHEME:REFERENCE}` and `ENC:v1:...` in the values of a layer."""
    problems: list[Problem] = []
    variables: list[str] = []
    secrets: list[KeyPath] = []
    reader = Secrets(environ, layer.folder, key_file(environ))

    def walk(value: Any, path: KeyPath) -> Any:
        if is_mapping(value):
            return {key: walk(each, (*path, key)) for key, each in value.items()}
        if is_list(value):
            return [walk(each, (*path, str(place))) for place, each in enumerate(value)]
        if isinstance(value, str) and is_encrypted(value):
            return secret_of(lambda: reader.decrypt(value, ".".join(path)), path)
        if not isinstance(value, str) or "$" not in value:
            return value
        return _REFERENCE.sub(lambda match: value_of(match, path), value)

    def value_of(match: re.Match[str], path: KeyPath) -> str:
        if match["name"]:
            found = environ.get(match["name"])
            if found is not None:
                variables.append(match["name"])
            if match["default"] is not None:
                return found or match["text"]
            if found is None:
                problems.append(Problem(layer.origin, layer.spell(path), *_missing(match["name"])))
            return found or ""
        if match["scheme"]:
            return secret_of(lambda: reader.look_up(match["scheme"], match["reference"]), path)
        if match["bad"]:
            remedy = "Write ${NAME}, ${file:PATH} or ${NAME:-default}; $$ is a dollar sign."
            problems.append(Problem(layer.origin, layer.spell(path), "a ${ that names no variable", remedy))
        return "$"

    def secret_of(read: Callable[[], str], path: KeyPath) -> str:
        secrets.append(path)
        try:
            return read()
        except SecretError as error:
            problems.append(Problem(layer.origin, layer.spell(path), str(error), error.remedy))
        return ""

    return Interpolated(replace(layer, values=walk(layer.values, ())), problems, variables, secrets)


def _missing(name: str) -> tuple[str, str]:
    return f"the environment variable {name} is not set", f"Set {name}, here or in .env, or write ${{{name}:-default}}."


# The environment


def read_dotenv(folder: Path) -> dict[str, str]:
    """Return the variables of `folder/.env`, or none."""
    path = folder / ".env"
    if not path.is_file():
        return {}
    from dotenv import dotenv_values

    try:
        found = dotenv_values(path)
    except (OSError, UnicodeDecodeError):
        raise ConfigurationError(".env cannot be read as UTF-8 text.", suggestion="Save it as UTF-8.") from None
    return {name: value for name, value in found.items() if value is not None}


def environment_layer(origin: str, environ: Mapping[str, str], folder: Path) -> Layer:
    """Return the layer of `DRAGOMAN_SECTION__KEY` variables. Other variables of that prefix are the user's own."""
    values: dict[str, Any] = {}
    names: dict[KeyPath, str] = {}
    for variable, path in _variables(environ):
        if path[0] not in TOP:
            continue
        place = values
        for part in path[:-1]:
            if not isinstance(place.get(part), dict):
                place[part] = {}
            place = place[part]
        place[path[-1]] = environ[variable]
        names[path] = variable
    return Layer(origin, values, folder, names)


def find_misspelled_variables(origin: str, environ: Mapping[str, str]) -> Iterator[str]:
    """Yield a warning for each variable that is not read and is similar to the name of a section."""
    for variable, path in _variables(environ):
        meant = "" if path[0] in TOP else suggest(path[0], TOP)
        if meant:
            yield f"{origin}: {variable} is not read: there is no section {path[0]}. {meant}"


def _variables(environ: Mapping[str, str]) -> Iterator[tuple[str, KeyPath]]:
    """Yield variables of two or more parts, short paths first: a variable for a key overrides one for its table."""
    found: list[tuple[str, KeyPath]] = []
    for variable in environ:
        if variable.upper().startswith(PREFIX):
            path = tuple(variable[len(PREFIX) :].lower().split("__"))
            if (len(path) > 1 or path == ("default_database",)) and all(path):
                found.append((variable, path))
    yield from sorted(found, key=lambda each: (len(each[1]), each))
