-- What the compose file's Postgres begins with: a shop that a role may only read, and a database for the audit.
\getenv shop_password SHOP_PASSWORD
\getenv audit_password AUDIT_PASSWORD

CREATE ROLE reader LOGIN PASSWORD :'shop_password';
CREATE ROLE audit LOGIN PASSWORD :'audit_password';
CREATE DATABASE shop;
CREATE DATABASE audit;

\connect shop
CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, email text NOT NULL);
CREATE TABLE orders (id int PRIMARY KEY, customer_id int NOT NULL REFERENCES customers, total numeric(12, 2) NOT NULL);
INSERT INTO customers VALUES (1, 'Ada', 'ada@example.com'), (2, 'Grace', 'grace@example.com');
INSERT INTO orders VALUES (1, 1, 12.50), (2, 1, 99.00), (3, 2, 7.25);
GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader;

-- The gateway creates the table of its record at the first start, and owns it. To take it away then, as `postgres`:
--   ALTER TABLE calls OWNER TO postgres; GRANT SELECT, INSERT ON calls TO audit; REVOKE CREATE ON SCHEMA public FROM audit;
\connect audit
GRANT CREATE ON SCHEMA public TO audit;
