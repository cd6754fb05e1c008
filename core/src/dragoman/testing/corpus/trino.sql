-- The tables the queries of trino.jsonl and any.jsonl read; one statement each, of a catalog that can be written.
CREATE TABLE customers (id integer, name varchar, city varchar);
CREATE TABLE orders (id integer, customer_id integer, total decimal(12, 2), placed_at timestamp(3));
CREATE TABLE cities (city varchar);
CREATE TABLE documents (id integer, doc varchar);
CREATE TABLE events (id integer, tags array(varchar), props map(varchar, integer), place row(x double, y double));
CREATE TABLE prices (symbol varchar, day date, price integer);
CREATE TABLE "update" (id integer, "insert" varchar, "drop" varchar, "delete" varchar);
CREATE VIEW big_orders AS SELECT * FROM orders WHERE total > 100;
INSERT INTO customers VALUES (1, 'Ada', 'London'), (2, 'Blaise', 'Paris'), (3, 'Carl', NULL);
INSERT INTO orders VALUES (1, 1, 12.5, TIMESTAMP '2024-01-31 00:00:00'), (2, 1, 250, TIMESTAMP '2024-02-01 00:00:00'), (3, 2, 9.99, TIMESTAMP '2024-02-29 12:30:00');
INSERT INTO cities VALUES ('London'), ('Paris');
INSERT INTO documents VALUES (1, '{"a": 1, "b": [1, 2], "c": {"d": "x"}}');
INSERT INTO events VALUES (1, ARRAY['a', 'b'], MAP(ARRAY['k'], ARRAY[7]), CAST(ROW(1, 2) AS row(x double, y double))), (2, ARRAY[], MAP(), NULL);
INSERT INTO prices VALUES ('A', DATE '2024-01-01', 10), ('A', DATE '2024-01-02', 8), ('A', DATE '2024-01-03', 7), ('A', DATE '2024-01-04', 9), ('B', DATE '2024-01-01', 3);
INSERT INTO "update" VALUES (1, 'a', 'b', 'c')
