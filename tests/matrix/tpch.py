"""The 22 questions of TPC-H, written once and rendered in each SQL.

`{date D}`, `{date D + N unit}`, `{year X}`, `{part X FROM LENGTH}` and `{exact SUM VALUE}` are what the SQLs spell
differently: in SQLite, 0.06 + 0.01 is a binary float below 0.07, and who asks it has to write 0.07. Where the
benchmark leaves the order of equal rows open, a key is added, so that answers can be compared.
"""

from __future__ import annotations

import re

_PLACE = re.compile(r"\{(\w+) ([^}]*)\}")
_SHIFTED = re.compile(r"(\S+) ([+-]) (\d+) (\w+)")


def render(text: str, dialect: str) -> str:
    """Return a question in the SQL of `dialect`: sqlite, or what the standard says for the others."""
    spelling = _sqlite if dialect == "sqlite" else _standard
    return _PLACE.sub(lambda found: spelling(found[1], found[2]), text).strip()


def _standard(kind: str, given: str) -> str:
    if kind == "year":
        return f"extract(year from {given})"
    if kind == "exact":
        return given.rpartition(" ")[0]
    if kind == "part":
        value, start, length = given.split()
        return f"substring({value} from {start} for {length})"
    shifted = _SHIFTED.fullmatch(given)
    if shifted:
        day, sign, count, unit = shifted.groups()
        return f"date '{day}' {sign} interval '{count}' {unit}"
    return f"date '{given}'"


def _sqlite(kind: str, given: str) -> str:
    if kind == "year":
        return f"cast(strftime('%Y', {given}) as integer)"
    if kind == "exact":
        return given.rpartition(" ")[2]
    if kind == "part":
        return f"substr({', '.join(given.split())})"
    shifted = _SHIFTED.fullmatch(given)
    if shifted:
        day, sign, count, unit = shifted.groups()
        return f"date('{day}', '{sign}{count} {unit}s')"
    return f"'{given}'"


TABLES = {
    "region": "r_regionkey bigint, r_name varchar(25), r_comment varchar(152)",
    "nation": "n_nationkey bigint, n_name varchar(25), n_regionkey bigint, n_comment varchar(152)",
    "supplier": "s_suppkey bigint, s_name varchar(25), s_address varchar(40), s_nationkey bigint, s_phone varchar(15),"
    " s_acctbal decimal(12,2), s_comment varchar(101)",
    "customer": "c_custkey bigint, c_name varchar(25), c_address varchar(40), c_nationkey bigint, c_phone varchar(15),"
    " c_acctbal decimal(12,2), c_mktsegment varchar(10), c_comment varchar(117)",
    "part": "p_partkey bigint, p_name varchar(55), p_mfgr varchar(25), p_brand varchar(10), p_type varchar(25),"
    " p_size integer, p_container varchar(10), p_retailprice decimal(12,2), p_comment varchar(23)",
    "partsupp": "ps_partkey bigint, ps_suppkey bigint, ps_availqty integer, ps_supplycost decimal(12,2),"
    " ps_comment varchar(199)",
    "orders": "o_orderkey bigint, o_custkey bigint, o_orderstatus varchar(1), o_totalprice decimal(12,2),"
    " o_orderdate date, o_orderpriority varchar(15), o_clerk varchar(15), o_shippriority integer,"
    " o_comment varchar(79)",
    "lineitem": "l_orderkey bigint, l_partkey bigint, l_suppkey bigint, l_linenumber integer, l_quantity decimal(12,2),"
    " l_extendedprice decimal(12,2), l_discount decimal(12,2), l_tax decimal(12,2), l_returnflag varchar(1),"
    " l_linestatus varchar(1), l_shipdate date, l_commitdate date, l_receiptdate date, l_shipinstruct varchar(25),"
    " l_shipmode varchar(10), l_comment varchar(44)",
}

QUESTIONS: dict[str, str] = {
    "Q1": """
select l_returnflag, l_linestatus, sum(l_quantity) as sum_qty, sum(l_extendedprice) as sum_base_price,
    sum(l_extendedprice * (1 - l_discount)) as sum_disc_price,
    sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) as sum_charge, avg(l_quantity) as avg_qty,
    avg(l_extendedprice) as avg_price, avg(l_discount) as avg_disc, count(*) as count_order
from lineitem where l_shipdate <= {date 1998-12-01 - 90 day}
group by l_returnflag, l_linestatus order by l_returnflag, l_linestatus""",
    "Q2": """
select s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment
from part, supplier, partsupp, nation, region
where p_partkey = ps_partkey and s_suppkey = ps_suppkey and p_size = 15 and p_type like '%BRASS'
    and s_nationkey = n_nationkey and n_regionkey = r_regionkey and r_name = 'EUROPE'
    and ps_supplycost = (
        select min(ps_supplycost) from partsupp, supplier, nation, region
        where p_partkey = ps_partkey and s_suppkey = ps_suppkey and s_nationkey = n_nationkey
            and n_regionkey = r_regionkey and r_name = 'EUROPE')
order by s_acctbal desc, n_name, s_name, p_partkey limit 100""",
    "Q3": """
select l_orderkey, sum(l_extendedprice * (1 - l_discount)) as revenue, o_orderdate, o_shippriority
from customer, orders, lineitem
where c_mktsegment = 'BUILDING' and c_custkey = o_custkey and l_orderkey = o_orderkey
    and o_orderdate < {date 1995-03-15} and l_shipdate > {date 1995-03-15}
group by l_orderkey, o_orderdate, o_shippriority order by revenue desc, o_orderdate, l_orderkey limit 10""",
    "Q4": """
select o_orderpriority, count(*) as order_count from orders
where o_orderdate >= {date 1993-07-01} and o_orderdate < {date 1993-07-01 + 3 month}
    and exists (select * from lineitem where l_orderkey = o_orderkey and l_commitdate < l_receiptdate)
group by o_orderpriority order by o_orderpriority""",
    "Q5": """
select n_name, sum(l_extendedprice * (1 - l_discount)) as revenue
from customer, orders, lineitem, supplier, nation, region
where c_custkey = o_custkey and l_orderkey = o_orderkey and l_suppkey = s_suppkey and c_nationkey = s_nationkey
    and s_nationkey = n_nationkey and n_regionkey = r_regionkey and r_name = 'ASIA'
    and o_orderdate >= {date 1994-01-01} and o_orderdate < {date 1994-01-01 + 1 year}
group by n_name order by revenue desc""",
    "Q6": """
select sum(l_extendedprice * l_discount) as revenue from lineitem
where l_shipdate >= {date 1994-01-01} and l_shipdate < {date 1994-01-01 + 1 year}
    and l_discount between {exact 0.06 - 0.01 0.05} and {exact 0.06 + 0.01 0.07} and l_quantity < 24""",
    "Q7": """
select supp_nation, cust_nation, l_year, sum(volume) as revenue
from (select n1.n_name as supp_nation, n2.n_name as cust_nation, {year l_shipdate} as l_year,
        l_extendedprice * (1 - l_discount) as volume
    from supplier, lineitem, orders, customer, nation n1, nation n2
    where s_suppkey = l_suppkey and o_orderkey = l_orderkey and c_custkey = o_custkey
        and s_nationkey = n1.n_nationkey and c_nationkey = n2.n_nationkey
        and ((n1.n_name = 'FRANCE' and n2.n_name = 'GERMANY') or (n1.n_name = 'GERMANY' and n2.n_name = 'FRANCE'))
        and l_shipdate between {date 1995-01-01} and {date 1996-12-31}) as shipping
group by supp_nation, cust_nation, l_year order by supp_nation, cust_nation, l_year""",
    "Q8": """
select o_year, sum(case when nation = 'BRAZIL' then volume else 0 end) / sum(volume) as mkt_share
from (select {year o_orderdate} as o_year, l_extendedprice * (1 - l_discount) as volume, n2.n_name as nation
    from part, supplier, lineitem, orders, customer, nation n1, nation n2, region
    where p_partkey = l_partkey and s_suppkey = l_suppkey and l_orderkey = o_orderkey and o_custkey = c_custkey
        and c_nationkey = n1.n_nationkey and n1.n_regionkey = r_regionkey and r_name = 'AMERICA'
        and s_nationkey = n2.n_nationkey and o_orderdate between {date 1995-01-01} and {date 1996-12-31}
        and p_type = 'ECONOMY ANODIZED STEEL') as all_nations
group by o_year order by o_year""",
    "Q9": """
select nation, o_year, sum(amount) as sum_profit
from (select n_name as nation, {year o_orderdate} as o_year,
        l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity as amount
    from part, supplier, lineitem, partsupp, orders, nation
    where s_suppkey = l_suppkey and ps_suppkey = l_suppkey and ps_partkey = l_partkey and p_partkey = l_partkey
        and o_orderkey = l_orderkey and s_nationkey = n_nationkey and p_name like '%green%') as profit
group by nation, o_year order by nation, o_year desc""",
    "Q10": """
select c_custkey, c_name, sum(l_extendedprice * (1 - l_discount)) as revenue, c_acctbal, n_name, c_address, c_phone,
    c_comment
from customer, orders, lineitem, nation
where c_custkey = o_custkey and l_orderkey = o_orderkey and o_orderdate >= {date 1993-10-01}
    and o_orderdate < {date 1993-10-01 + 3 month} and l_returnflag = 'R' and c_nationkey = n_nationkey
group by c_custkey, c_name, c_acctbal, c_phone, n_name, c_address, c_comment
order by revenue desc, c_custkey limit 20""",
    "Q11": """
select ps_partkey, sum(ps_supplycost * ps_availqty) as value from partsupp, supplier, nation
where ps_suppkey = s_suppkey and s_nationkey = n_nationkey and n_name = 'GERMANY'
group by ps_partkey having sum(ps_supplycost * ps_availqty) > (
    select sum(ps_supplycost * ps_availqty) * 0.01 from partsupp, supplier, nation
    where ps_suppkey = s_suppkey and s_nationkey = n_nationkey and n_name = 'GERMANY')
order by value desc, ps_partkey""",
    "Q12": """
select l_shipmode,
    sum(case when o_orderpriority = '1-URGENT' or o_orderpriority = '2-HIGH' then 1 else 0 end) as high_line_count,
    sum(case when o_orderpriority <> '1-URGENT' and o_orderpriority <> '2-HIGH' then 1 else 0 end) as low_line_count
from orders, lineitem
where o_orderkey = l_orderkey and l_shipmode in ('MAIL', 'SHIP') and l_commitdate < l_receiptdate
    and l_shipdate < l_commitdate and l_receiptdate >= {date 1994-01-01}
    and l_receiptdate < {date 1994-01-01 + 1 year}
group by l_shipmode order by l_shipmode""",
    "Q13": """
select c_count, count(*) as custdist
from (select c_custkey, count(o_orderkey) as c_count
    from customer left outer join orders on c_custkey = o_custkey and o_comment not like '%special%requests%'
    group by c_custkey) as c_orders
group by c_count order by custdist desc, c_count desc""",
    "Q14": """
select 100.00 * sum(case when p_type like 'PROMO%' then l_extendedprice * (1 - l_discount) else 0 end)
    / sum(l_extendedprice * (1 - l_discount)) as promo_revenue
from lineitem, part
where l_partkey = p_partkey and l_shipdate >= {date 1995-09-01} and l_shipdate < {date 1995-09-01 + 1 month}""",
    "Q15": """
with revenue as (
    select l_suppkey as supplier_no, sum(l_extendedprice * (1 - l_discount)) as total_revenue from lineitem
    where l_shipdate >= {date 1996-01-01} and l_shipdate < {date 1996-01-01 + 3 month} group by l_suppkey)
select s_suppkey, s_name, s_address, s_phone, total_revenue from supplier, revenue
where s_suppkey = supplier_no and total_revenue = (select max(total_revenue) from revenue) order by s_suppkey""",
    "Q16": """
select p_brand, p_type, p_size, count(distinct ps_suppkey) as supplier_cnt from partsupp, part
where p_partkey = ps_partkey and p_brand <> 'Brand#45' and p_type not like 'MEDIUM POLISHED%'
    and p_size in (49, 14, 23, 45, 19, 3, 36, 9)
    and ps_suppkey not in (select s_suppkey from supplier where s_comment like '%Customer%Complaints%')
group by p_brand, p_type, p_size order by supplier_cnt desc, p_brand, p_type, p_size""",
    "Q17": """
select sum(l_extendedprice) / 7.0 as avg_yearly from lineitem, part
where p_partkey = l_partkey and p_brand = 'Brand#23' and p_container = 'MED BOX'
    and l_quantity < (select 0.2 * avg(l_quantity) from lineitem where l_partkey = p_partkey)""",
    "Q18": """
select c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity) as quantity
from customer, orders, lineitem
where o_orderkey in (select l_orderkey from lineitem group by l_orderkey having sum(l_quantity) > 250)
    and c_custkey = o_custkey and o_orderkey = l_orderkey
group by c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice
order by o_totalprice desc, o_orderdate, o_orderkey limit 100""",
    "Q19": """
select sum(l_extendedprice * (1 - l_discount)) as revenue from lineitem, part
where (p_partkey = l_partkey and p_brand = 'Brand#12' and p_container in ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG')
        and l_quantity >= 1 and l_quantity <= 11 and p_size between 1 and 5
        and l_shipmode in ('AIR', 'AIR REG') and l_shipinstruct = 'DELIVER IN PERSON')
    or (p_partkey = l_partkey and p_brand = 'Brand#23' and p_container in ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK')
        and l_quantity >= 10 and l_quantity <= 20 and p_size between 1 and 10
        and l_shipmode in ('AIR', 'AIR REG') and l_shipinstruct = 'DELIVER IN PERSON')
    or (p_partkey = l_partkey and p_brand = 'Brand#34' and p_container in ('LG CASE', 'LG BOX', 'LG PACK', 'LG PKG')
        and l_quantity >= 20 and l_quantity <= 30 and p_size between 1 and 15
        and l_shipmode in ('AIR', 'AIR REG') and l_shipinstruct = 'DELIVER IN PERSON')""",
    "Q20": """
select s_name, s_address from supplier, nation
where s_suppkey in (
        select ps_suppkey from partsupp
        where ps_partkey in (select p_partkey from part where p_name like 'forest%')
            and ps_availqty > (
                select 0.5 * sum(l_quantity) from lineitem
                where l_partkey = ps_partkey and l_suppkey = ps_suppkey and l_shipdate >= {date 1994-01-01}
                    and l_shipdate < {date 1994-01-01 + 1 year}))
    and s_nationkey = n_nationkey and n_name = 'CANADA'
order by s_name""",
    "Q21": """
select s_name, count(*) as numwait from supplier, lineitem l1, orders, nation
where s_suppkey = l1.l_suppkey and o_orderkey = l1.l_orderkey and o_orderstatus = 'F'
    and l1.l_receiptdate > l1.l_commitdate
    and exists (select * from lineitem l2 where l2.l_orderkey = l1.l_orderkey and l2.l_suppkey <> l1.l_suppkey)
    and not exists (
        select * from lineitem l3
        where l3.l_orderkey = l1.l_orderkey and l3.l_suppkey <> l1.l_suppkey and l3.l_receiptdate > l3.l_commitdate)
    and s_nationkey = n_nationkey and n_name = 'SAUDI ARABIA'
group by s_name order by numwait desc, s_name limit 100""",
    "Q22": """
select cntrycode, count(*) as numcust, sum(c_acctbal) as totacctbal
from (select {part c_phone 1 2} as cntrycode, c_acctbal from customer
    where {part c_phone 1 2} in ('13', '31', '23', '29', '30', '18', '17')
        and c_acctbal > (
            select avg(c_acctbal) from customer
            where c_acctbal > 0.00 and {part c_phone 1 2} in ('13', '31', '23', '29', '30', '18', '17'))
        and not exists (select * from orders where o_custkey = c_custkey)) as custsale
group by cntrycode order by cntrycode""",
}
