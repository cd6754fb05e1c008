-- The tables the queries of postgres.jsonl and any.jsonl read.
CREATE TYPE mood AS ENUM ('sad', 'happy');
CREATE TYPE pair AS (a integer, b text);
CREATE TABLE customers (id integer PRIMARY KEY, name text, city text);
CREATE TABLE orders (
    id integer PRIMARY KEY, customer_id integer REFERENCES customers, total numeric(12, 2), placed_at timestamp
);
CREATE TABLE cities (city text PRIMARY KEY);
CREATE TABLE counters (id serial PRIMARY KEY);
CREATE TABLE documents (id integer PRIMARY KEY, doc jsonb);
CREATE TABLE "update" (id integer, "insert" text, "drop" text, "delete" text);
CREATE VIEW big_orders AS SELECT * FROM orders WHERE total > 100;
INSERT INTO customers VALUES (1, 'Ada', 'London'), (2, 'Blaise', 'Paris'), (3, 'Carl', NULL);
INSERT INTO orders VALUES (1, 1, 12.5, '2024-01-31'), (2, 1, 250, '2024-02-01'), (3, 2, 9.99, '2024-02-29');
INSERT INTO cities VALUES ('London'), ('Paris');
INSERT INTO documents VALUES (1, '{"a": 1, "b": [1, 2]}');
