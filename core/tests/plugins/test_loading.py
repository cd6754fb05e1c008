"""A plugin that cannot be used is an error that names its distribution and the remedy; the others keep working."""

import re
from importlib.metadata import entry_points

import pytest
from dragoman import CONTRACT, ConfigurationError, Database, DialectError, DialectPlugin, Gateway
from dragoman.plugins import Plugins
from hypothesis import example, given
from hypothesis import strategies as st

FINE = "plugin = PretendPlugin()"

# What is wrong, as source of the module; then words of the error and of the remedy.
BROKEN = {
    "its module is not there": ("plugin = None", "other", "needs the module", "pip install --force-reinstall"),
    "a dependency is not installed": ("import no_such_driver", "plugin", "'no_such_driver'", "--force-reinstall"),
    "part of a dependency is missing": (
        "from json import no_such_name",
        "plugin",
        "it imports 'no_such_name' from json, which has none.",
        "pip install --upgrade",
    ),
    "it needs a newer dragoman": (
        "from dragoman import RowStreem",
        "plugin",
        "it imports 'RowStreem' from dragoman, which has none (did you mean 'RowStream'?); this dragoman does not",
        "Upgrade dragoman",
    ),
    "it needs a newer part of dragoman": (
        "import dragoman.newer",
        "plugin",
        "it imports the module 'dragoman.newer'; this dragoman does not have it.",
        "Upgrade dragoman",
    ),
    "it raises": ("1 / 0", "plugin", "ZeroDivisionError in dragoman_odd, line ", "pip install --upgrade dragoman-odd"),
    "it leaves": ("raise SystemExit(3)", "plugin", "SystemExit", "pip install --upgrade dragoman-odd"),
    "it does not compile": ("def (", "plugin", "SyntaxError at line ", "pip install --upgrade dragoman-odd"),
    "the entry point names nothing": (
        FINE,
        "nothing",
        "its entry point names 'nothing', which the module dragoman_odd does not have.",
        "pip install --upgrade dragoman-odd",
    ),
    "a class": (FINE, "PretendPlugin", "names a class; it must name an instance", "pip install"),
    "another type": ("plugin = {}", "plugin", "names a dict, not a DialectPlugin", "pip install"),
    "no dialect": (f"del PretendPlugin.dialect\n{FINE}", "plugin", "`dialect` is not", "pip install"),
    "a dialect of another type": (f"PretendPlugin.dialect = 'odd'\n{FINE}", "plugin", "`dialect` is not", "pip"),
    "an older contract": (
        f"from dataclasses import replace\nPretendPlugin.dialect = replace(PretendPlugin.dialect, contract=0)\n{FINE}",
        "plugin",
        f"contract version 0, this dragoman has {CONTRACT}",
        "Upgrade dragoman-odd",
    ),
    "a newer contract": (
        f"from dataclasses import replace\nPretendPlugin.dialect = replace(PretendPlugin.dialect, contract=99)\n{FINE}",
        "plugin",
        "contract version 99",
        "Upgrade dragoman.",
    ),
    "a hook is missing": (
        "class Half(DialectPlugin):\n    dialect = PretendPlugin.dialect\n    @hookimpl\n"
        "    def executor(self, database): ...\nplugin = Half()",
        "plugin",
        "it makes the class Half, which lacks inspector.",
        "pip install",
    ),
    "a hook is not marked": (
        "class Odd(PretendPlugin):\n    def executor(self, database): ...\nplugin = Odd()",
        "plugin",
        "hook executor is not marked with @hookimpl",
        "pip install",
    ),
    "a hook is misspelled": (
        "class Odd(PretendPlugin):\n    @hookimpl\n    def validator(self, database): ...\nplugin = Odd()",
        "plugin",
        "'validator' with @hookimpl, which is not a hook: did you mean validators?",
        "pip install",
    ),
    "a hook nobody has": (
        "class Odd(PretendPlugin):\n    @hookimpl\n    def on_start(self): ...\nplugin = Odd()",
        "plugin",
        "there are executor, inspector, validators",
        "pip install",
    ),
    "a hook takes what it is not given": (
        "class Odd(PretendPlugin):\n    @hookimpl\n    def executor(self, db): ...\nplugin = Odd()",
        "plugin",
        "hook executor takes db; it may take database",
        "pip install",
    ),
    "a hook is async": (
        "class Odd(PretendPlugin):\n    @hookimpl\n    async def executor(self, database): ...\nplugin = Odd()",
        "plugin",
        "hook executor is async",
        "pip install",
    ),
    "options that are no dataclass": (
        "from dataclasses import replace\nPretendPlugin.dialect = replace(PretendPlugin.dialect, options=dict)\n"
        + FINE,
        "plugin",
        "`options` is not a dataclass",
        "pip install",
    ),
    "another name than it registers": (
        "from dataclasses import replace\nPretendPlugin.dialect = replace(PretendPlugin.dialect, name='sqlite')\n"
        + FINE,
        "plugin",
        "its dialect is named 'sqlite', a name that it does not register",
        "pip install",
    ),
}


# A field of the Dialect as its author wrote it, and words of the error.
FIELDS = {
    "contract='1'": "gave its contract as a str, not as an int: contract=1",
    "contract=True": "gave its contract as a bool, not as an int: contract=1",
    "sqlglot='duckdbb'": "gave Dialect.sqlglot as 'duckdbb', not as a dialect sqlglot knows; did you mean 'duckdb'?",
    "capabilities=frozenset({'cancel'})": (
        "gave the capability 'cancel' as a str, not as a member of Capability: did you mean Capability.CANCEL?"
    ),
    "capabilities='cancel'": "gave Dialect.capabilities as a str, not as a frozenset of Capability",
    "capabilities=[Capability.CANCEL]": "gave Dialect.capabilities as a list, not as a frozenset of Capability",
    "folding='Lower'": "gave Dialect.folding as 'Lower', not as 'lower' or 'upper' or 'insensitive' or 'exact'",
    "placeholder='%s'": "gave Dialect.placeholder as '%s', not as '$1' or '?'",
    "quote_marks='`'": "gave Dialect.quote_marks as '`', not as two characters",
    "reserved='select'": "gave Dialect.reserved as a str, not as a frozenset of str",
    "reserved=frozenset({'SELECT'})": "gave 'SELECT' in Dialect.reserved, which must be in lower case",
    "rules=Rules(functions=frozenset({'Abs'}))": "gave 'Abs' in Rules.functions, which must be in lower case",
    "rules=Rules(functions=['abs'])": "gave Rules.functions as a list, not as a frozenset of str",
    "rules=Rules(statements=('SHOW',))": "gave an element of Rules.statements as a str, not as Pattern",
    "rules={}": "gave Dialect.rules as a dict, not as Rules or Callable",
    "lexicon=Lexicon": "gave Dialect.lexicon as a type, not as Lexicon",
    "default_schema=1": "gave Dialect.default_schema as an int, not as str",
}


@pytest.mark.usefixtures("good")
@pytest.mark.parametrize("field", FIELDS)
async def test_a_dialect_that_describes_itself_wrongly_is_told_so(field: str, install, caplog):
    source = (
        "from dataclasses import replace\n"
        f"PretendPlugin.dialect = replace(PretendPlugin.dialect, **dict({field}))\n" + FINE
    )
    install("dragoman-odd", source, dialects={"pretend": "plugin"}, pretend=True)
    wanted = f"The plugin 'pretend' of dragoman-odd 1.0 is broken: it {FIELDS[field]}"
    async with Gateway.open(at("pretend", "good")) as gateway:
        with pytest.raises(DialectError) as raised:
            await gateway.query("pretend", "SELECT 1")
        assert raised.value.message.startswith(wanted)
        assert (await gateway.query("good", "SELECT 1")).row_count == 1
    assert wanted in caplog.text
    listed = next(each for each in Plugins.discover().list_installed() if each.name == "pretend")
    assert (listed.status, listed.error.startswith(wanted)) == ("broken", True)


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (
            "name='pretend', sqlglot='sqlite'",
            "it makes Dialect wrongly: missing 1 required keyword-only argument: 'con",
        ),
        ("name='pretend', contract=1, sqlglot='sqlite', quotes='x'", "got an unexpected keyword argument 'quotes'"),
    ],
)
def test_a_dialect_that_cannot_be_made_says_what_it_lacks(arguments: str, what: str, install):
    source = f"class Odd(PretendPlugin):\n    dialect = Dialect({arguments})\nplugin = Odd()"
    install("dragoman-odd", source, dialects={"pretend": "plugin"}, pretend=True)
    with pytest.raises(DialectError, match=r"of dragoman-odd 1\.0 is broken") as raised:
        Plugins.discover().load("pretend")
    assert what in raised.value.message


def test_a_plugin_that_fails_when_it_is_looked_at_is_listed_as_broken(install):
    source = "class Odd(PretendPlugin):\n    @property\n    def dialect(self): raise KeyError('x')\nplugin = Odd()"
    install("dragoman-odd", source, dialects={"pretend": "plugin"}, pretend=True)
    listed = {each.name: each for each in Plugins.discover().list_installed()}
    assert "inspecting it raised KeyError" in listed["pretend"].error
    assert listed["sqlite"].status == "ok"


@pytest.mark.parametrize("name", ["sqlite", "postgres", "postgresql", "trino"])
def test_a_rival_never_gets_a_name_of_ours_by_itself(name: str, install):
    install("dragoman-odd", FINE, dialects={name: "plugin"}, pretend=True)
    rival = next(
        each
        for each in entry_points(group="dragoman.dialects", name=name)
        if each.dist and each.dist.name == "dragoman-odd"
    )
    with pytest.raises(DialectError, match="which is not installed; dragoman-odd claims it") as raised:
        Plugins({name: [rival]}).load(name)
    assert "Install dragoman-" in raised.value.suggestion
    with pytest.raises(DialectError, match="claimed by several distributions: dragoman-odd and"):
        Plugins.discover().load(name)


@pytest.fixture
def good(install):
    install(
        "dragoman-good",
        "from dataclasses import replace\nPretendPlugin.dialect = replace(PretendPlugin.dialect, name='good')\n" + FINE,
        dialects={"good": "plugin"},
        pretend=True,
    )


def at(*dialects: str) -> list[Database]:
    return [Database(name=dialect, dialect=dialect) for dialect in dialects]


@pytest.mark.usefixtures("good")
@pytest.mark.parametrize("case", BROKEN)
async def test_a_broken_plugin_is_named_with_its_remedy_and_others_answer(case: str, install):
    source, attribute, what, remedy = BROKEN[case]
    site = install("dragoman-odd", source, dialects={"pretend": attribute}, pretend=True)
    if attribute == "other":
        (site / "dragoman_odd.py").unlink()
    async with Gateway.open(at("pretend", "good")) as gateway:
        for _ in range(2):
            with pytest.raises(DialectError) as raised:
                await gateway.query("pretend", "SELECT 1")
            assert "dragoman-odd 1.0 is broken" in raised.value.message
            assert what in raised.value.message
            assert remedy in raised.value.suggestion
            assert str(site) not in raised.value.message
            assert (await gateway.query("good", "SELECT 1")).rows == [["good", "SELECT 1"]]


@pytest.mark.usefixtures("good")
async def test_a_dialect_that_is_not_installed_is_named_with_how_to_install_it():
    async with Gateway.open(at("sqlit", "good")) as gateway:
        with pytest.raises(DialectError, match="'sqlit' is installed") as raised:
            gateway.database("sqlit")
        assert raised.value.suggestion == "Did you mean 'sqlite'? It is installed."
        assert (await gateway.query("good", "SELECT 1")).row_count == 1


def test_another_name_of_a_dialect_of_ours_leads_to_its_distribution():
    plugins = Plugins({})
    for name, distribution in (
        ("postgresql", "dragoman-postgres"),
        ("sqllite", "dragoman-sqlite"),
        ("presto-trino", ""),
    ):
        with pytest.raises(DialectError) as raised:
            plugins.load(name)
        assert (f"Install the distribution {distribution}." if distribution else "plugin") in raised.value.suggestion


@pytest.mark.parametrize("name", ["mysql", "file", "testing", "sqlalchemy", "all", "x", "pip", "dragoman"])
def test_no_distribution_is_named_that_we_do_not_know(name: str):
    """A name that anybody may register is an invitation to whoever registers it."""
    with pytest.raises(DialectError) as raised:
        Plugins({}).load(name)
    assert "Install the distribution dragoman" not in raised.value.suggestion
    assert "dragoman new-dialect" in raised.value.suggestion


NAMES = st.text("abcdefghijklmnopqrstuvwxyz0123456789-_.", min_size=1, max_size=20)
NEAR = st.builds(
    "{}{}{}".format, st.sampled_from(["", "x", "my"]), st.sampled_from(["sqlite", "postgre", "trin"]), NAMES
)


@given(name=NAMES | NEAR)
@example(name="postgre")
@example(name="postgres-official")
@example(name="ask")
def test_whatever_is_asked_for_only_a_distribution_of_ours_that_is_not_installed_is_named(name: str):
    ours = {"dragoman-sqlite", "dragoman-postgres", "dragoman-trino", "dragoman-duckdb"}
    installed = Plugins.discover()
    for plugins, there in ((Plugins({}), set[str]()), (installed, {f"dragoman-{each}" for each in installed.names})):
        if name in plugins.names:
            continue
        with pytest.raises(DialectError) as raised:
            plugins.load(name)
        named = set(re.findall(r"(?:install|distribution) (dragoman-[\w.-]*\w)", raised.value.suggestion))
        assert named <= ours - there
        assert "pip install" not in raised.value.suggestion


@pytest.mark.usefixtures("good")
async def test_a_name_that_two_distributions_claim_is_nobody_s(install):
    for distribution in ("dragoman-first", "dragoman-second"):
        install(distribution, FINE, dialects={"pretend": "plugin"}, pretend=True)
    async with Gateway.open(at("pretend", "good")) as gateway:
        with pytest.raises(DialectError, match="dragoman-first and dragoman-second") as raised:
            gateway.database("pretend")
        assert "pip uninstall dragoman-second" in raised.value.suggestion
        assert (await gateway.query("good", "SELECT 1")).row_count == 1


async def test_one_plugin_may_have_two_names(install):
    install("dragoman-odd", FINE, dialects={"pretend": "plugin", "pretense": "plugin"}, pretend=True)
    async with Gateway.open(at("pretense", "pretend")) as gateway:
        assert (await gateway.query("pretense", "SELECT 1")).rows[0][0] == "pretense"
        assert (await gateway.query("pretend", "SELECT 1")).rows[0][0] == "pretend"
        assert gateway.database("pretend").dialect is gateway.database("pretense").dialect


HOOK_FAULTS = {
    "makes what lacks a method": (
        "executor",
        "return type('Odd', (Executor,), {})()",
        "makes the class Odd, which lacks open",
    ),
    "returns nothing": ("executor", "return None", "returned NoneType, not an Executor"),
    "returns another type": ("executor", "return 3", "returned int, not an Executor"),
    "returns a class": (
        "executor",
        "return PretendExecutor",
        "the class PretendExecutor, not an Executor: return an inst",
    ),
    "returns a coroutine": (
        "executor",
        "return PretendInspector().version()",
        "coroutine, not an Executor: a hook is synchronous",
    ),
    "leaves": ("inspector", "raise SystemExit(3)", "raised SystemExit"),
    "panics": ("executor", "raise type('PanicException', (BaseException,), {})", "raised PanicException"),
    "says it was cancelled": ("executor", "raise __import__('asyncio').CancelledError", "raised CancelledError"),
    "ends a generator": ("executor", "raise GeneratorExit", "raised GeneratorExit"),
    "raises": ("executor", "raise KeyError(database.password.reveal())", "raised KeyError"),
    "an inspector that is none": ("inspector", "return executor", "not an Inspector"),
    "one validator, not several": ("validators", "return object()", "gave an object, not a Validator"),
    "validators that are none": ("validators", "return ['x']", "gave a str, not a Validator"),
}


@pytest.mark.parametrize("case", HOOK_FAULTS)
async def test_a_hook_that_misbehaves_is_an_error_of_its_plugin(case: str, install):
    hook, body, what = HOOK_FAULTS[case]
    parameters = "database, executor" if hook == "inspector" else "database"
    source = f"class Odd(PretendPlugin):\n    @hookimpl\n    def {hook}(self, {parameters}): {body}\nplugin = Odd()"
    install("dragoman-odd", source, dialects={"pretend": "plugin"}, pretend=True)
    async with Gateway.open([Database(name="x", dialect="pretend", password=secret("hush"))]) as gateway:
        with pytest.raises(DialectError) as raised:
            gateway.database("x")
    assert f"The hook {hook} of 'pretend' of dragoman-odd" in raised.value.message
    assert what in raised.value.message
    assert "Upgrade dragoman-odd or report it" in raised.value.suggestion
    assert "hush" not in str(raised.value)


def secret(text: str):
    from dragoman import Secret

    return Secret(text)


async def test_an_error_of_ours_from_a_hook_comes_out_as_it_is(install):
    source = """
    class Odd(PretendPlugin):
        @hookimpl
        def executor(self, database):
            raise ConfigurationError("databases.x.host is missing.", suggestion="Set it.")
    plugin = Odd()
    """
    install("dragoman-odd", source, dialects={"pretend": "plugin"}, pretend=True)
    async with Gateway.open([Database(name="x", dialect="pretend")]) as gateway:
        with pytest.raises(ConfigurationError, match="host is missing"):
            gateway.database("x")


def test_the_list_of_dialects_shows_broken_ones_with_their_reason(install):
    install("dragoman-odd", "1 / 0", dialects={"odd": "plugin"})
    install("dragoman-good", FINE, version="2.5", dialects={"pretend": "plugin"}, pretend=True)
    known = {installed.name: installed for installed in Plugins.discover().list_installed()}
    assert (known["odd"].status, known["odd"].distribution, known["odd"].version) == ("broken", "dragoman-odd", "1.0")
    assert "ZeroDivisionError" in known["odd"].error
    assert (known["pretend"].status, known["pretend"].version) == ("ok", "2.5")
    assert known["pretend"].capabilities == ("read_only_session",)
    assert known["sqlite"].driver.startswith("apsw 3.")


def test_both_claimants_of_a_name_are_listed(install):
    for distribution in ("dragoman-first", "dragoman-second"):
        install(distribution, FINE, dialects={"pretend": "plugin"}, pretend=True)
    known = {installed.name: installed for installed in Plugins.discover().list_installed()}
    assert known["pretend"].status == "broken"
    assert {"dragoman-first", "dragoman-second"} == set(known["pretend"].distribution.split(", "))


def test_a_plugin_is_loaded_once_and_its_error_remembered(install):
    site = install("dragoman-odd", "1 / 0", dialects={"pretend": "plugin"})
    plugins = Plugins.discover()
    errors = []
    for _ in range(3):
        with pytest.raises(DialectError) as raised:
            plugins.load("pretend")
        errors.append(raised.value)
        (site / "dragoman_odd.py").write_text("plugin = None")
    assert errors[0] is errors[1] is errors[2]
    assert isinstance(plugins.load("sqlite"), DialectPlugin)
    assert plugins.load("sqlite") is plugins.load("sqlite")


def test_policies_are_listed_with_the_broken_ones_and_their_reason(install):
    install("dragoman-odd", "1 / 0", policies={"odd": "plugin"})
    install("dragoman-calm", "from dragoman import *\nplugin = PolicyPlugin()", policies={"calm": "plugin"})
    known = {
        installed.name: installed for installed in Plugins.discover().list_installed() if installed.kind == "policy"
    }
    assert (known["calm"].status, known["calm"].distribution) == ("ok", "dragoman-calm")
    assert known["odd"].status == "broken"
    assert "ZeroDivisionError" in known["odd"].error
    assert "pip install --upgrade dragoman-odd" in known["odd"].error
