"""Make `shop.db`, a small SQLite database to try dragoman on, in the current folder."""

import sqlite3
from contextlib import closing

with closing(sqlite3.connect("shop.db")) as connection, connection:
    connection.executescript("""
        CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT NOT NULL, country TEXT NOT NULL);
        CREATE TABLE invoice (
            id INTEGER PRIMARY KEY,
            customer_id INTEGER NOT NULL REFERENCES customer (id),
            total DECIMAL(10,2) NOT NULL,
            status TEXT NOT NULL CHECK (status IN ('open', 'paid'))
        );
        INSERT INTO customer VALUES (1, 'Ada', 'UK'), (2, 'Bao', 'VN'), (3, 'Chidi', 'NG');
        INSERT INTO invoice VALUES (10, 1, 12.5, 'paid'), (11, 1, 80, 'open'), (12, 3, 7.25, 'paid');
    """)
