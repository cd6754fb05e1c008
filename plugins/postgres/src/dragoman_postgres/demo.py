"""The demo's support desk: questions of a shop's customers about its products. Its contents never vary."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import asyncpg
from dragoman import Database

from dragoman_postgres.testing import Server
from dragoman_postgres.testing.server import find_unprivileged_user

_log = logging.getLogger(__name__)

SCHEMA = """
CREATE TYPE urgency AS ENUM ('low', 'normal', 'high');
CREATE TYPE ticket_state AS ENUM ('open', 'waiting', 'solved');
CREATE TABLE product (
    sku text PRIMARY KEY,
    name text NOT NULL UNIQUE,
    manual jsonb NOT NULL DEFAULT '{}'
);
CREATE TABLE agent (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL,
    languages text[] NOT NULL DEFAULT '{en}',
    on_duty int4range NOT NULL
);
CREATE TABLE ticket (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    product_sku text NOT NULL REFERENCES product (sku),
    customer_email text NOT NULL,
    agent_id integer REFERENCES agent (id),
    urgency urgency NOT NULL DEFAULT 'normal',
    state ticket_state NOT NULL DEFAULT 'open',
    opened_at timestamptz NOT NULL,
    answered_within interval CHECK (answered_within >= '0'),
    subject text NOT NULL
);
CREATE INDEX ticket_open ON ticket (opened_at) WHERE state <> 'solved';
CREATE TABLE message (
    ticket_id integer NOT NULL REFERENCES ticket (id) ON DELETE CASCADE,
    number smallint NOT NULL,
    by_customer boolean NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (ticket_id, number)
);
CREATE VIEW waiting AS
    SELECT t.id, p.name AS product, t.subject, t.opened_at FROM ticket t JOIN product p ON p.sku = t.product_sku
    WHERE t.state <> 'solved';
COMMENT ON TABLE ticket IS 'What customers asked for help with';
COMMENT ON COLUMN ticket.customer_email IS 'As in the shop: customer.email';
COMMENT ON COLUMN ticket.product_sku IS 'As in the shop: product.sku';
COMMENT ON COLUMN agent.on_duty IS 'Hours of the day, UTC';
CREATE ROLE reader LOGIN;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader;
ALTER ROLE reader SET default_transaction_read_only = on;
"""
PRODUCTS = (
    "Copper pan,Paring knife,Cutting board,Whisk,Moka pot,Watering can,Hand trowel,Seed tray,Pruning shears,Brass lamp,"
    "Fountain pen,Notebook,Letter tray,Blotter,Canvas bag,Tin cup,Wool blanket"
).split(",")
CUSTOMERS = (
    "Ada Bao Chidi Dana Elif Farid Grete Hana Ines Jonas Kemal Lena Mara Nilo Oda Pavel Quinn Rosa Sami Tove".split()
)
AGENTS = (("Yusuf", ["en", "tr"]), ("Milena", ["en", "bg", "de"]), ("Akua", ["en", "fr"]))
SUBJECTS = ("Arrived broken", "Where is my parcel?", "How do I clean it?", "Wrong colour", "Can I return it?")
FIRST_DAY = datetime(2024, 1, 1, tzinfo=UTC)


def build(folder: Path) -> Sequence[Database]:
    """Build `support` on the embedded server and return its configuration; nothing if no server can be started."""
    try:
        server = _start(folder)
    except (RuntimeError, OSError) as error:
        _log.debug("the demo runs without PostgreSQL: %s", error)
        return ()
    try:
        asyncio.run(_fill(server))
    finally:
        server.stop()
    return (
        server.configure(
            "support",
            user="reader",
            description="Tickets about the shop's products, by sku and customer e-mail",
            options={"embedded": str(server.folder)},
        ),
    )


def _start(folder: Path) -> Server:
    """Start the server with its data in `folder`, so that it is removed with the folder."""
    if find_unprivileged_user():
        folder.chmod(0o711)  # the user that the server runs as must be able to enter
    try:
        return Server.start(lasting=True, within=folder)
    except RuntimeError:  # that user cannot enter a parent folder, or the name of the socket is too long
        return Server.start(lasting=True)


async def _fill(server: Server) -> None:
    await server.create(SCHEMA, name="support")
    connection = await asyncpg.connect(server.address("support"))
    try:
        for table, columns, rows in _rows(random.Random(11)):
            await connection.copy_records_to_table(table, columns=list(columns), records=rows)
        await connection.execute("ANALYZE")
    finally:
        await connection.close()


def _rows(chance: random.Random) -> list[tuple[str, Sequence[str], Sequence[tuple[Any, ...]]]]:
    skus = [f"SKU-{number:03}" for number in range(1, len(PRODUCTS) + 1)]
    products = [(sku, name, f'{{"pages": {chance.randint(1, 24)}}}') for sku, name in zip(skus, PRODUCTS, strict=True)]
    agents = [(name, languages, asyncpg.Range(6 * n, 6 * n + 9)) for n, (name, languages) in enumerate(AGENTS, 1)]
    tickets = [_ticket(chance, skus) for _ in range(600)]
    messages = [
        (ticket, number, number % 2 == 1, "Please help." if number % 2 else "We look into it.")
        for ticket in range(1, len(tickets) + 1)
        for number in range(1, chance.randint(2, 6))
    ]
    return [
        ("product", ["sku", "name", "manual"], products),
        ("agent", ["name", "languages", "on_duty"], agents),
        ("ticket", _TICKET.split(), tickets),
        ("message", ["ticket_id", "number", "by_customer", "body"], messages),
    ]


_TICKET = "product_sku customer_email agent_id urgency state opened_at answered_within subject"


def _ticket(chance: random.Random, skus: Sequence[str]) -> tuple[Any, ...]:
    # A few products cause more trouble than others.
    sku = chance.choice([*skus, *(skus[4:6]), *(skus[4:6])])
    state = chance.choice(["open", "waiting", "solved", "solved", "solved"])
    return (
        sku,
        f"{chance.choice(CUSTOMERS).lower()}@example.com",
        None if state == "open" else chance.randint(1, len(AGENTS)),
        chance.choice(["low", "normal", "normal", "high"]),
        state,
        FIRST_DAY + timedelta(minutes=chance.randrange(700 * 24 * 60)),
        None if state == "open" else timedelta(minutes=chance.randrange(5, 3000)),
        chance.choice(SUBJECTS),
    )
