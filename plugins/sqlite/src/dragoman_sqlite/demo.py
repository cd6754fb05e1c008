"""Two small databases to try dragoman on: a shop, and the warehouse that supplies it. Their contents never vary."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from dragoman import Database

SHOP = """
CREATE TABLE region (code TEXT PRIMARY KEY, name TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE customer (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    email TEXT NOT NULL UNIQUE,
    region_code TEXT NOT NULL REFERENCES region (code),
    referred_by INTEGER REFERENCES customer (id),
    since DATE NOT NULL
);
CREATE TABLE category (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, parent_id INTEGER REFERENCES category (id));
CREATE TABLE product (
    id INTEGER PRIMARY KEY,
    sku TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    category_id INTEGER NOT NULL REFERENCES category (id),
    price DECIMAL(10,2) NOT NULL CHECK (price > 0)
);
CREATE TABLE "order" (
    id INTEGER PRIMARY KEY,
    customer_id INTEGER NOT NULL REFERENCES customer (id),
    status TEXT NOT NULL CHECK (status IN ('pending', 'paid', 'shipped', 'returned')),
    placed_on DATE NOT NULL
);
CREATE TABLE order_item (
    order_id INTEGER NOT NULL REFERENCES "order" (id) ON DELETE CASCADE,
    line INTEGER NOT NULL,
    product_id INTEGER NOT NULL REFERENCES product (id),
    quantity INTEGER NOT NULL CHECK (quantity > 0),
    unit_price DECIMAL(10,2) NOT NULL,
    amount DECIMAL(12,2) GENERATED ALWAYS AS (quantity * unit_price),
    PRIMARY KEY (order_id, line)
) WITHOUT ROWID;
CREATE TABLE review (
    id INTEGER PRIMARY KEY,
    product_id INTEGER NOT NULL REFERENCES product (id),
    customer_id INTEGER NOT NULL REFERENCES customer (id),
    stars INTEGER NOT NULL CHECK (stars BETWEEN 1 AND 5),
    note TEXT
);
CREATE INDEX order_by_day ON "order" (placed_on);
CREATE INDEX order_open ON "order" (customer_id) WHERE status = 'pending';
CREATE INDEX customer_email ON customer (lower(email));
CREATE VIRTUAL TABLE review_text USING fts5(note, content='review', content_rowid='id');
CREATE VIEW revenue AS
    SELECT strftime('%Y-%m', o.placed_on) AS month, count(DISTINCT o.id) AS orders, sum(i.amount) AS total
    FROM "order" AS o JOIN order_item AS i ON i.order_id = o.id WHERE o.status IN ('paid', 'shipped') GROUP BY 1;
"""
WAREHOUSE = """
CREATE TABLE site (id INTEGER PRIMARY KEY, city TEXT NOT NULL, country TEXT NOT NULL);
CREATE TABLE shelf (
    site_id INTEGER NOT NULL REFERENCES site (id),
    code TEXT NOT NULL,
    capacity INTEGER NOT NULL,
    PRIMARY KEY (site_id, code)
) WITHOUT ROWID;
CREATE TABLE stock (
    sku TEXT NOT NULL,
    site_id INTEGER NOT NULL,
    shelf_code TEXT NOT NULL,
    quantity INTEGER NOT NULL CHECK (quantity >= 0),
    counted_on DATE,
    PRIMARY KEY (sku, site_id, shelf_code),
    FOREIGN KEY (site_id, shelf_code) REFERENCES shelf (site_id, code)
) WITHOUT ROWID;
CREATE TABLE delivery (
    id INTEGER PRIMARY KEY,
    sku TEXT NOT NULL,
    site_id INTEGER NOT NULL REFERENCES site (id),
    quantity INTEGER NOT NULL,
    arrived_on DATE NOT NULL
);
"""
FIRST_DAY = date(2024, 1, 1)
GOODS = {
    "Kitchen": ["Copper pan", "Paring knife", "Cutting board", "Whisk", "Moka pot"],
    "Garden": ["Watering can", "Hand trowel", "Seed tray", "Pruning shears"],
    "Desk": ["Brass lamp", "Fountain pen", "Notebook", "Letter tray", "Blotter"],
    "Travel": ["Canvas bag", "Tin cup", "Wool blanket"],
}
NAMES = (
    "Ada Bao Chidi Dana Elif Farid Grete Hana Ines Jonas Kemal Lena Mara Nilo Oda Pavel Quinn Rosa Sami Tove".split()
)
NOTES = ["Arrived quickly, well packed.", "Smaller than I thought.", "Lasts for ever.", "The handle came loose.", None]


def build(folder: Path) -> Sequence[Database]:
    """Build new `shop.db` and `warehouse.db` in `folder`, and return them as configured databases."""
    chance = random.Random(7)
    _write(folder / "shop.db", SHOP, lambda connection: _fill_shop(connection, chance))
    _write(folder / "warehouse.db", WAREHOUSE, lambda connection: _fill_warehouse(connection, chance))
    return [
        _database(folder, "shop", "Customers, products, orders and reviews of a small shop, 2024 and 2025"),
        _database(folder, "warehouse", "Stock and deliveries by SKU, at three sites"),
    ]


def _database(folder: Path, name: str, description: str) -> Database:
    return Database(name=name, dialect="sqlite", database=f"{name}.db", folder=folder, description=description)


def _write(path: Path, schema: str, fill: Callable[[sqlite3.Connection], None]) -> None:
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(schema)
        fill(connection)
        connection.execute("ANALYZE")


def _insert(connection: sqlite3.Connection, table: str, columns: str, rows: Iterable[Sequence[Any]]) -> None:
    places = ", ".join("?" for _ in columns.split())
    connection.executemany(f'INSERT INTO "{table}" ({", ".join(columns.split())}) VALUES ({places})', rows)


def _day(chance: random.Random, days: int = 700) -> str:
    return (FIRST_DAY + timedelta(chance.randrange(days))).isoformat()


def _products() -> list[tuple[int, str, str, int, str]]:
    goods = [(category, name) for category, names in enumerate(GOODS.values(), 1) for name in names]
    return [
        (number, f"SKU-{number:03}", name, category, f"{7 + number * 3}.{number * 5 % 100:02}")
        for number, (category, name) in enumerate(goods, 1)
    ]


def _fill_shop(connection: sqlite3.Connection, chance: random.Random) -> None:
    regions = [("north", "North"), ("south", "South"), ("east", "East"), ("west", "West")]
    _insert(connection, "region", "code name", regions)
    customers = [
        (number, name, f"{name.lower()}@example.com", chance.choice(regions)[0], number // 3 or None, _day(chance, 300))
        for number, name in enumerate(NAMES, 1)
    ]
    _insert(connection, "customer", "id name email region_code referred_by since", customers)
    _insert(connection, "category", "id name", enumerate(GOODS, 1))
    products = _products()
    _insert(connection, "product", "id sku name category_id price", products)
    statuses = ["pending", "paid", "paid", "shipped", "shipped", "shipped", "returned"]
    orders = [(n, chance.randint(1, len(NAMES)), chance.choice(statuses), _day(chance)) for n in range(1, 1201)]
    _insert(connection, "order", "id customer_id status placed_on", orders)
    items = [
        (order, line, product[0], chance.randint(1, 4), product[4])
        for order, *_ in orders
        for line, product in enumerate(chance.sample(products, chance.randint(1, 4)), 1)
    ]
    _insert(connection, "order_item", "order_id line product_id quantity unit_price", items)
    reviews = [
        (n, chance.choice(products)[0], chance.randint(1, len(NAMES)), chance.randint(1, 5), chance.choice(NOTES))
        for n in range(1, 201)
    ]
    _insert(connection, "review", "id product_id customer_id stars note", reviews)
    connection.execute("INSERT INTO review_text (review_text) VALUES ('rebuild')")


def _fill_warehouse(connection: sqlite3.Connection, chance: random.Random) -> None:
    sites = [(1, "Trieste", "IT"), (2, "Rotterdam", "NL"), (3, "Izmir", "TR")]
    _insert(connection, "site", "id city country", sites)
    shelves = [(site, f"{row}{number}", 400) for site, *_ in sites for row in "AB" for number in range(1, 4)]
    _insert(connection, "shelf", "site_id code capacity", shelves)
    skus = [product[1] for product in _products()]
    stock = [
        (sku, site, code, chance.randrange(200), _day(chance))
        for sku in skus
        for site, code, _ in chance.sample(shelves, 4)
    ]
    _insert(connection, "stock", "sku site_id shelf_code quantity counted_on", stock)
    deliveries = [
        (n, chance.choice(skus), chance.randint(1, 3), chance.randint(10, 120), _day(chance)) for n in range(1, 401)
    ]
    _insert(connection, "delivery", "id sku site_id quantity arrived_on", deliveries)
