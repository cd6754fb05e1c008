"""`dragoman ask` and `dragoman eval`, as a person starts them."""

import asyncio
import sys

from scripted import KEY, query, says, scripted

COUNT = "SELECT count(*) AS orders FROM orders"


async def run(folder, url, *words, stdin=""):
    """Return what the program says: exit code, stdout, stderr. `url`: of the model; without one there is none."""
    model = f'[model]\nname = "openai:m"\nbase_url = "{url}"\napi_key = "{KEY}"\nexamples_dir = "examples"\n'
    (folder / "dragoman.toml").write_text('[databases.shop]\nurl = "sqlite:///shop.db"\n' + (model if url else ""))
    command = [sys.executable, "-m", "dragoman", *words, "--config", str(folder / "dragoman.toml")]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe, cwd=folder)
    out, err = await process.communicate(stdin.encode())
    return process.returncode, out.decode(), err.decode()


async def test_a_conversation_at_the_terminal(shop):
    replies = [
        query(COUNT, assumptions=["All orders count."]),
        says("clarify", "By status or by day?"),
        query("SELECT status, count(*) AS n FROM orders GROUP BY status ORDER BY n"),
    ]
    async with scripted(replies) as model:
        code, out, err = await run(
            shop.folder, model.url, "ask", "shop", "How many orders?", "--chat", "--chart",
            stdin="And in groups?\nBy status\n/right\n",
        )  # fmt: skip
        last = model.last(2)
    assert "orders\n------\n   200" in out
    assert f"open  {'█' * 40}" in out
    assert "By status or by day?" in err
    assert "All orders count." in err
    assert COUNT in err
    assert "kept in shop.yaml" in err
    assert "Question: How many orders?" in last
    assert last.endswith("And in groups?\n(By status or by day?)\nBy status")
    assert KEY not in out + err
    assert code == 0


async def test_a_conversation_asks_no_command_and_ends_by_one(shop):
    async with scripted([query(COUNT)]) as model:
        code, out, err = await run(
            shop.folder, model.url, "ask", "shop", "How many orders?", "--chat", "--explain",
            stdin="/write\n/quit\nHow many, again?\n",
        )  # fmt: skip
    assert len(model.requests) == 1
    assert "There is no /write. Ask; an empty line, /quit or Ctrl-D ends." in err
    assert "openai:m: 1 call, 100 tokens in" in err
    assert out.count("orders\n") == 1
    assert code == 0


async def test_the_command_of_evaluation_tells_what_was_right_and_writes_junit(shop):
    (shop.folder / "own.yaml").write_text(
        f"- question: How many?\n  database: shop\n  sql: {COUNT}\n"
        "- question: Which?\n  database: shop\n  expect: clarify\n"
    )
    async with scripted(lambda _: query(COUNT)) as model:
        code, out, _ = await run(shop.folder, model.url, "eval", "own.yaml", "--runs", "2", "--junit", "report.xml")
    assert code == 1
    assert "2 of 4 right (50.0%); openai:m: 4 calls, 400 tokens in, 80 out" in out
    assert (shop.folder / "report.xml").read_text().count("<testcase") == 4
