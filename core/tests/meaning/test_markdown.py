"""What markdown files tell, and what is wrong with those that cannot be read."""

import pytest
from dragoman.meaning.markdown import read
from dragoman.meaning.values import ColumnText, Example, Note, TableText, WrongFile

SHOP = """\
# Shop

Orders, customers and payments
since 2019. <!-- ada -->

## Glossary
- **active customer**: ordered within 90 days,
  whatever became of it
- churn: no order for a year

## Metrics
- `revenue` -- paid orders: `sum(total) FILTER (WHERE status = 'paid')`

## Conventions
Money is in cents.

- Days are UTC.

## Time zones
- Shops are in Europe.

## Tables

### sales.orders
One row for each order. <!-- openai:m, 2026-11-23 -->

- `status`: how far it is {paid|open|void}
- total: in cents

## Examples

### How many orders are open?

```sql
SELECT count(*) -- all
FROM orders WHERE status = 'open';
```
"""


def test_every_part_of_a_file_is_read():
    told = read(SHOP, "shop.md")
    assert told.notes == (
        Note("term", "ordered within 90 days, whatever became of it", "active customer"),
        Note("term", "no order for a year", "churn"),
        Note("metric", "paid orders: `sum(total) FILTER (WHERE status = 'paid')`", "revenue"),
        Note("convention", "Money is in cents."),
        Note("convention", "Days are UTC."),
        Note("convention", "Shops are in Europe."),
    )
    assert told.tables == (
        TableText(
            ("sales", "orders"),
            "One row for each order.",
            {"status": ColumnText("how far it is", ("paid", "open", "void")), "total": ColumnText("in cents")},
            place="shop.md:24",
        ),
    )
    sql = "SELECT count(*) -- all\nFROM orders WHERE status = 'open'"
    assert told.examples == (Example("How many orders are open?", sql, "shop.md:32"),)


def test_the_text_before_the_parts_says_what_the_database_is():
    assert read("Orders\nof a shop.\n\n## Glossary\n", "x.md").about == "Orders of a shop."
    assert read(SHOP, "shop.md").about == "Orders, customers and payments since 2019."


def test_a_comment_without_an_end_hides_the_rest_and_many_of_them_take_no_time():
    assert read("Orders.\n<!-- secret", "x.md").about == "Orders."
    assert read("Orders.\n" + "<!--" * 200_000, "x.md").about == "Orders."


@pytest.mark.parametrize(
    ("text", "line", "words", "remedy"),
    [
        ("\n## Glosary\n- a: b", 2, "no part 'Glosary'", "Did you mean ## Glossary?"),
        ("## Metrics\n\n- revenue\n", 3, "no name", "- **name**"),
        ("### orders\n", 1, "in no section", "## Tables"),
        ("## Tables\n### orders\n- id: a\n- ID: b\n", 4, "described twice", ""),
        ("## Tables\n### a..b\n", 2, "not the name of a table", "schema.table"),
        ("## Examples\n### How many?\nSELECT 1\n", 2, "one query", "```sql"),
        ("## Examples\n### How many?\n```sql\nSELECT 1\n", 2, "one query", "```sql"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(text, line, words, remedy):
    with pytest.raises(WrongFile, match=words) as caught:
        read(text, "x.md")
    assert caught.value.line == line
    assert remedy in caught.value.remedy
