"""Ask a database from Python, within the same limits as an agent."""

import asyncio

from dragoman import Database, Gateway


async def main() -> None:
    shop = Database(name="shop", dialect="sqlite", database="shop.db")
    async with Gateway.open([shop]) as gateway:
        result = await gateway.query(
            "shop", "SELECT name, total FROM customer JOIN invoice ON customer.id = customer_id"
        )
        print([column.name for column in result.columns], result.rows)


asyncio.run(main())
