CREATE TABLE region (r_regionkey integer PRIMARY KEY, r_name text, r_comment text);
CREATE TABLE nation (n_nationkey integer PRIMARY KEY, n_name text, n_regionkey integer REFERENCES region, n_comment text);
CREATE TABLE supplier (s_suppkey integer PRIMARY KEY, s_name text, s_address text, s_nationkey integer REFERENCES nation, s_phone text, s_acctbal numeric);
CREATE TABLE part (p_partkey integer PRIMARY KEY, p_name text, p_mfgr text, p_brand text, p_type text, p_size integer, p_container text, p_retailprice numeric);
CREATE TABLE partsupp (ps_partkey integer REFERENCES part, ps_suppkey integer REFERENCES supplier, ps_availqty integer, ps_supplycost numeric, PRIMARY KEY (ps_partkey, ps_suppkey));
CREATE TABLE customer (c_custkey integer PRIMARY KEY, c_name text, c_address text, c_nationkey integer REFERENCES nation, c_phone text, c_acctbal numeric, c_mktsegment text);
CREATE TABLE orders (o_orderkey integer PRIMARY KEY, o_custkey integer REFERENCES customer, o_orderstatus text, o_totalprice numeric, o_orderdate date, o_orderpriority text, o_clerk text, o_shippriority integer);
CREATE TABLE lineitem (l_orderkey integer REFERENCES orders, l_partkey integer REFERENCES part, l_suppkey integer REFERENCES supplier, l_linenumber integer, l_quantity numeric, l_returnflag text, l_linestatus text, l_shipdate date, l_shipmode text, PRIMARY KEY (l_orderkey, l_linenumber));
