"""What the error of a statement says that reads another of its caller's databases."""

import json

import pytest
from dragoman import Gateway
from dragoman.config import Configuration
from dragoman.config.roles import Grant, Role
from dragoman.model import Principal
from dragoman.tools import Toolbox

ELSEWHERE = 'A statement reads one database. Query crm by itself: pass `database` "crm".'
STATEMENTS = [
    "SELECT * FROM crm.leads",
    "SELECT * FROM CRM.main.leads",
    'SELECT u.id FROM users u JOIN "crm".leads l ON l.email = u.email',
    "SELECT u.id FROM users u, crm.leads l",
    "SELECT * FROM users WHERE email IN (SELECT email FROM crm.leads)",
]


@pytest.mark.parametrize("sql", STATEMENTS)
@pytest.mark.parametrize(
    ("tool", "more"),
    [
        ("execute_query", {}),
        ("execute_query", {"keep": "leads"}),
        ("explain_query", {}),
        ("export_result", {"format": "csv"}),
    ],
)
async def test_another_database_is_named(sql, tool, more, database, scripts, open_toolbox, fail):
    shop, crm = (database(name, scripts[name]) for name in ("shop", "crm"))
    async with open_toolbox(shop, crm, profile="full") as toolbox:
        error = await fail(toolbox, tool, {"database": "shop", "sql": sql, **more})
    assert error["suggestion"].startswith(ELSEWHERE)


@pytest.mark.parametrize(
    "sql", ["SELECT * FROM nix.leads", "SELECT crm.id FROM nix AS crm", "SELECT * FROM shop.users"]
)
async def test_no_other_database_is_named_where_none_is_meant(sql, toolbox, fail):
    error = await fail(toolbox, "execute_query", {"database": "shop", "sql": sql})
    assert "reads one database" not in error["suggestion"]


async def test_a_database_that_is_hidden_from_the_caller_is_not_named(database, scripts):
    def role(name: str, *databases: str) -> Role:
        grants = (Grant(database=each, tables=("main.*",), key=f"roles.{name}.grants.0") for each in databases)
        return Role(name=name, principals=frozenset({name}), grants=tuple(grants))

    configuration = Configuration(
        databases={name: database(name, script) for name, script in scripts.items()},
        roles={"one": role("one", "shop"), "both": role("both", "shop", "crm")},
    )
    async with Gateway.open(configuration) as gateway:
        toolbox, told = Toolbox(gateway), dict[tuple[str, str], str]()
        for who in ("one", "both"):
            for name in ("crm", "nix"):
                arguments = {"database": "shop", "sql": f"SELECT * FROM {name}.leads"}
                answer = await toolbox.call("execute_query", arguments, principal=Principal(who, subject=who))
                told[who, name] = json.dumps(json.loads(answer.text)["error"])
    assert "reads one database" in told["both", "crm"]
    assert told["one", "crm"] == told["one", "nix"].replace("nix", "crm")


async def test_a_hidden_name_is_no_keyword_s_meaning(database):
    grant = Grant(database="shop", tables=("main.users",), key="roles.part.grants.0")
    role = Role(name="part", principals=frozenset({"*"}), grants=(grant,))
    told = []
    for hidden in ("order", "other"):
        shop = database("shop", f'CREATE TABLE users (id INTEGER); CREATE TABLE "{hidden}" (id INTEGER)')
        async with Gateway.open(Configuration(databases={"shop": shop}, roles={"part": role})) as gateway:
            answer = await Toolbox(gateway).call("execute_query", {"sql": "SELECT * FROM order"})
            told.append(json.loads(answer.text)["error"])
        shop.folder.joinpath("shop.db").unlink()
    assert told[0] == told[1]
    assert told[0]["code"] == "INVALID_SQL"
