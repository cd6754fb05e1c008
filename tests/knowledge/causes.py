"""Seeded causes of empty answers: a shop, and queries of which each finds nothing for one known reason."""

from dataclasses import dataclass

SHOP = """
CREATE TABLE city (id integer PRIMARY KEY, label text NOT NULL);
CREATE TABLE client (id integer PRIMARY KEY, segment text NOT NULL, city_id integer, fax text,
  legacy_code text NOT NULL,  joined date NOT NULL);
CREATE TABLE purchase (id integer PRIMARY KEY, client_id integer NOT NULL, status text NOT NULL, channel text NOT NULL,
  amount integer NOT NULL, voucher text, placed date NOT NULL);
CREATE TABLE delivery (id integer PRIMARY KEY, purchase_id integer NOT NULL, carrier text NOT NULL);
CREATE TABLE refund (id integer PRIMARY KEY, purchase_id integer NOT NULL);
"""
STATUSES, CHANNELS = ("paid", "open", "void"), ("web", "store", "phone call")
SEGMENTS, CARRIERS = ("Private", "Business"), ("Northern Freight", "Sea Line")


def rows() -> list[str]:
    """INSERT statements; deliveries belong to purchases that are not there."""
    found = ["INSERT INTO city VALUES (1, 'Oslo'), (2, 'Rome')"]
    clients = ", ".join(
        f"({n}, '{SEGMENTS[n % 2]}', {n % 2 + 1}, NULL, '', '2024-0{n % 9 + 1}-10')" for n in range(1, 101)
    )
    purchases = ", ".join(
        f"({n}, {n % 100 + 1}, '{STATUSES[n % 3]}', '{CHANNELS[n % 3]}', {n % 50 + 1}, NULL, '2025-0{n % 9 + 1}-05')"
        for n in range(1, 601)
    )
    deliveries = ", ".join(f"({n}, {n + 5000}, '{CARRIERS[n % 2]}')" for n in range(1, 201))
    return [
        *found,
        f"INSERT INTO client VALUES {clients}",
        f"INSERT INTO purchase VALUES {purchases}",
        f"INSERT INTO delivery VALUES {deliveries}",
    ]


@dataclass(frozen=True)
class Seed:
    """A query that finds nothing, and what the notice must name, in lower case."""

    kind: str
    sql: str
    names: tuple[str, ...]


def _seeds() -> list[Seed]:
    columns = {"status": STATUSES, "channel": CHANNELS}
    wrong_case = [
        Seed("case", f"SELECT id FROM purchase WHERE {column} = '{value.upper()}'", (column, value))
        for column, values in columns.items()
        for value in values
    ] + [
        Seed("case", "SELECT count(*) FROM client WHERE segment = 'private'", ("segment", "private")),
        Seed("case", "SELECT id FROM delivery WHERE carrier IN ('sea line', 'SEA LINE')", ("carrier", "sea line")),
        Seed("case", "SELECT p.id FROM purchase p JOIN client c ON c.id = p.client_id WHERE c.segment = 'BUSINESS'",
             ("segment", "business")),
    ]  # fmt: skip
    spelling = [
        Seed("spelling", "SELECT id FROM purchase WHERE status = 'payed'", ("status", "paid")),
        Seed("spelling", "SELECT id FROM purchase WHERE status = 'opn' AND amount > 3", ("status", "open")),
        Seed("spelling", "SELECT sum(amount) FROM purchase WHERE channel = 'internet web'", ("channel", "web")),
        Seed("spelling", "SELECT id FROM purchase WHERE channel = 'phone-call'", ("channel", "phone call")),
        Seed("spelling", "SELECT id FROM client WHERE segment = 'Busines'", ("segment", "business")),
        Seed("spelling", "SELECT id FROM delivery WHERE carrier = 'Northen Freight'", ("carrier", "northern freight")),
        Seed("spelling", "SELECT id FROM delivery WHERE carrier LIKE 'Sealine%'", ("carrier", "sea line")),
        Seed("spelling", "SELECT * FROM city WHERE label = 'Roma'", ("label", "rome")),
    ]
    blank = [
        Seed("blank", "SELECT id FROM client WHERE fax = '123'", ("fax", "always")),
        Seed("blank", "SELECT id FROM client WHERE legacy_code = 'A7'", ("legacy_code", "always blank")),
        Seed(
            "blank", "SELECT id FROM purchase WHERE voucher = 'SPRING' AND status = 'paid'", ("voucher", "always null")
        ),
        Seed("blank", "SELECT id FROM purchase WHERE voucher LIKE 'S%'", ("voucher",)),
        Seed("blank", "SELECT count(*) FROM purchase WHERE voucher IS NOT NULL", ("voucher",)),
        Seed("blank", "SELECT sum(amount) FROM purchase WHERE voucher <> ''", ("voucher",)),
    ]
    impossible = [
        Seed("impossible", "SELECT id FROM purchase WHERE amount > 30 AND amount < 10", ("amount > 30", "amount < 10")),
        Seed("impossible", "SELECT id FROM purchase WHERE status = 'paid' AND status = 'open'", ("exclude",)),
        Seed("impossible", "SELECT id FROM purchase WHERE voucher = NULL", ("is null",)),
        Seed("impossible", "SELECT id FROM purchase WHERE amount BETWEEN 20 AND 10", ("lower bound",)),
        Seed("impossible", "SELECT id FROM purchase WHERE status IS NULL", ("not null",)),
        Seed("impossible", "SELECT id FROM purchase WHERE lower(status) = 'PAID'", ("lower()",)),
        Seed("impossible", "SELECT id FROM purchase LIMIT 0", ("limit 0",)),
        Seed("impossible", "SELECT id FROM purchase WHERE placed > '2031-01-01'", ("placed",)),
        Seed("impossible", "SELECT id FROM purchase WHERE amount > 5000 AND status = 'open'", ("amount",)),
        Seed("impossible", "SELECT id FROM purchase WHERE placed > '2025-03-01' AND placed < '2025-02-01'",
             ("exclude",)),
        Seed("impossible", "SELECT id FROM purchase WHERE status = 'paid' AND channel = 'store'", ("none meets both",)),
        Seed("impossible", "SELECT status, count(*) FROM purchase GROUP BY status HAVING count(*) > 900", ("having",)),
        Seed("impossible", "SELECT id FROM city ORDER BY id LIMIT 5 OFFSET 40", ("offset",)),
    ]  # fmt: skip
    joins = [
        Seed("join", "SELECT p.id FROM purchase p JOIN delivery d ON d.purchase_id = p.id", ("partner", "purchase_id")),
        Seed("join", "SELECT count(*) FROM purchase p JOIN delivery d ON d.purchase_id = p.id WHERE p.status = 'paid'",
             ("partner",)),
        Seed("join", "SELECT c.id FROM client c JOIN purchase p ON p.client_id = c.id JOIN delivery d ON"
             " d.purchase_id = p.id", ("d ", "partner")),
        Seed("join", "SELECT d.id FROM delivery d, purchase p WHERE p.id = d.purchase_id", ("together",)),
        Seed("join", "SELECT d.id FROM delivery d JOIN purchase p USING (id) JOIN refund r ON r.purchase_id = p.id",
             ("no rows",)),
        Seed("join", "SELECT p.id FROM purchase p JOIN refund r ON r.purchase_id = p.id", ("r has no rows",)),
        Seed("join", "SELECT d.carrier FROM delivery d JOIN client c ON c.fax = d.carrier", ("partner",)),
    ]  # fmt: skip
    return [*wrong_case, *spelling, *blank, *impossible, *joins]


SEEDS = _seeds()
