-- The tables the queries of sqlite.jsonl and any.jsonl read.
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, city TEXT);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers (id), total REAL, placed_at TEXT);
CREATE TABLE cities (city TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE INDEX orders_customer ON orders (customer_id);
CREATE VIEW big_orders AS SELECT * FROM orders WHERE total > 100;
CREATE TABLE "update" (id INTEGER PRIMARY KEY, "delete" TEXT);
CREATE TABLE "odd names" (
    "a ""b""" TEXT, "select" TEXT, "from" TEXT, "where x" TEXT, größe REAL, 名前 TEXT, ñ TEXT, a$b TEXT, _x1 TEXT,
    "[x]" TEXT, "a--b" TEXT, "/*" TEXT, "index" INTEGER, action TEXT, abort TEXT, first TEXT, row TEXT, replace TEXT,
    plan TEXT, query TEXT, temp TEXT, "end" TEXT, desc_ TEXT, asc_ TEXT, vacuum TEXT, attach TEXT, pragma TEXT, explain TEXT
);
CREATE TABLE notes_json (id INTEGER PRIMARY KEY, doc TEXT);
CREATE VIRTUAL TABLE notes USING fts5 (body);
INSERT INTO customers VALUES (1, 'Ada', 'London'), (2, 'Blaise', 'Paris'), (3, 'Carl', NULL);
INSERT INTO orders VALUES (1, 1, 12.5, '2024-01-31'), (2, 1, 250.0, '2024-02-01'), (3, 2, 9.99, '2024-02-29');
INSERT INTO cities VALUES ('London'), ('Paris');
INSERT INTO notes_json VALUES (1, '{"a": 1, "b": [1, 2]}');
INSERT INTO notes VALUES ('hello world');
