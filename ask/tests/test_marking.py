"""A right answer is an example for later questions, a wrong one a case for `dragoman eval`."""

import asyncio
import fcntl
import random
import sys
from dataclasses import replace

import pytest
from dragoman import Busy, ConfigurationError, ParameterError, Principal
from dragoman.audit import AuditFile
from dragoman.config import Audit
from dragoman.config.roles import Grant, Role
from dragoman.gateway.asking import Question
from dragoman.meaning.search import rank
from dragoman.tools import Toolbox
from dragoman_ask import examples
from dragoman_ask.evaluation import Case, evaluate, load_cases
from scripted import query

COUNT = "SELECT count(*) AS orders FROM orders"


async def test_a_right_answer_is_told_to_the_model_with_the_next_question(asking, tmp_path):
    async with asking(lambda _: query(COUNT), examples_dir=tmp_path / "examples") as (gateway, model):
        toolbox = Toolbox(gateway, profile="full")
        await toolbox.call("ask", {"question": "How many orders are there?"})
        marked = await toolbox.call("rate_answer", {"question": "How many orders are there?", "right": True})
        assert marked.structured == {"kept": "shop.yaml"}
        await gateway.ask("How many orders are open?")
    assert "answered correctly before" in model.last()
    assert "Question: How many orders are there?" in model.last()
    assert load_cases(str(tmp_path / "examples" / "shop.yaml")) == [
        Case(question="How many orders are there?", database="shop", sql=COUNT)
    ]


async def test_an_example_that_no_longer_runs_is_not_told(asking, tmp_path):
    (tmp_path / "shop.yaml").write_text("- question: How many orders?\n  sql: SELECT gone FROM orders\n")
    async with asking([query(COUNT)], examples_dir=tmp_path) as (gateway, model):
        await gateway.ask("How many orders?")
    assert "gone" not in model.seen


PARTS = {
    "everything": {"tables": ("*",)},
    "a table is hidden": {"tables": ("main.orders",)},
    "a column is hidden": {"tables": ("*",), "deny_columns": ("*.email",)},
    "rows are hidden": {"tables": ("*",), "filter": "id > 1"},
    "a column is masked": {"tables": ("*",), "masks": {"*.email": "partial"}},
}


@pytest.mark.parametrize("part", PARTS)
async def test_who_sees_a_part_is_told_no_question_and_query_of_others(asking, shop, tmp_path, part):
    """They name values, and in the words of a question anything, that this caller may not see."""
    (tmp_path / "shop.md").write_text("# Shop\n\n## Examples\n\n### How many by Grace?\n\n```sql\nSELECT 2002\n```\n")
    (tmp_path / "shop.yaml").write_text(
        "- question: How many by Ada?\n  sql: SELECT count(*) FROM orders WHERE id = 1001\n"
    )
    grant = Grant(database="shop", key="roles.all.grants.0", **PARTS[part])
    roles = {"all": Role(name="all", principals=frozenset({"*"}), grants=(grant,))}
    told = replace(shop, knowledge=replace(shop.knowledge, files=(tmp_path / "shop.md",)))
    async with asking([query(COUNT)], told, roles=roles, examples_dir=tmp_path) as (gateway, model):
        await gateway.ask("How many orders?")
    shown = [words in model.seen for words in ("Ada", "1001", "Grace", "2002")]
    assert shown == [part == "everything"] * 4


async def test_an_example_is_compiled_and_not_run(asking, tmp_path):
    """A query that somebody marked may run for long, which would delay the questions of all others."""
    (tmp_path / "shop.yaml").write_text("- question: How many?\n  sql: SELECT abs(-9223372036854775808) AS fails\n")
    async with asking([query(COUNT)], examples_dir=tmp_path) as (gateway, model):
        await gateway.ask("How many orders?")
    assert "AS fails" in model.seen


async def test_a_file_of_examples_that_cannot_be_read_stops_no_question(asking, tmp_path, caplog):
    (tmp_path / "shop.yaml").write_text("- {")
    async with asking([query(COUNT)], examples_dir=tmp_path) as (gateway, _):
        assert (await gateway.ask("How many orders?")).result.rows == [[200]]
    assert "shop.yaml" in caplog.text


async def test_a_wrong_answer_is_a_case_that_must_come_out_otherwise(asking, tmp_path):
    wrong = "SELECT count(*) FROM customers"
    replies = [query(wrong), query(wrong), query(COUNT)]
    async with asking(replies, examples_dir=tmp_path) as (gateway, _):
        await gateway.ask("How many orders?")
        assert await gateway.asker().rate(Principal(), "How many orders?", right=False) == "shop.wrong.yaml"
        (case,) = load_cases(str(tmp_path / "shop.wrong.yaml"))
        assert not (await evaluate(gateway, case, Principal())).right
        assert (await evaluate(gateway, case, Principal())).right


async def test_the_last_mark_of_an_answer_counts(asking, tmp_path):
    def marked(name):
        return [case.question for case in load_cases(str(tmp_path / name))] if (tmp_path / name).exists() else []

    (tmp_path / "shop.yaml").write_text("# ours\n- question: Who?\n  sql: SELECT 1\n")
    async with asking([query(COUNT)], examples_dir=tmp_path) as (gateway, _):
        await gateway.ask("How many orders?")
        asker = gateway.asker()
        await asker.rate(Principal(), "How many orders?", right=True)
        await asker.rate(Principal(), "How many orders?", right=True)
        assert marked("shop.yaml") == ["Who?", "How many orders?"]
        await asker.rate(Principal(), "How many orders?", right=False)
        assert (marked("shop.yaml"), marked("shop.wrong.yaml")) == (["Who?"], ["How many orders?"])
        assert (tmp_path / "shop.yaml").read_text().startswith("# ours"), "what people wrote stays"
        await asker.rate(Principal(), "How many orders?", right=True)
    assert (marked("shop.yaml"), marked("shop.wrong.yaml")) == (["Who?", "How many orders?"], [])


MARKER = """
import random, sys
from pathlib import Path
from dragoman_ask.examples import add
folder, number = Path(sys.argv[1]), int(sys.argv[2])
chosen = random.Random(number)
for turn in range(60):
    for question in range(3):
        add(folder, "shop", f"{number} {question}", "SELECT 1", right=turn == 59 or chosen.random() < 0.5)
"""


async def test_the_last_mark_counts_whoever_marks_at_the_same_time(tmp_path):
    """Workers of one server share the files, and each has threads."""
    running = [await asyncio.create_subprocess_exec(sys.executable, "-c", MARKER, tmp_path, str(n)) for n in range(3)]
    assert [await each.wait() for each in running] == [0, 0, 0]
    marked = [case.question for case in load_cases(str(tmp_path / "shop.yaml"))]
    assert sorted(marked) == sorted(f"{number} {question}" for number in range(3) for question in range(3))
    assert not (tmp_path / "shop.wrong.yaml").exists()


async def test_a_process_that_keeps_the_lock_holds_up_one_thread_and_not_for_ever(asking, tmp_path, monkeypatch):
    """It may have been stopped. The threads are those of the whole gateway, and go on when their callers are gone."""
    monkeypatch.setattr(examples, "PATIENCE", 0.5)
    inside, most, adding = 0, [], examples.add

    def counted(*arguments, **more):
        nonlocal inside
        inside += 1
        most.append(inside)
        try:
            return adding(*arguments, **more)
        finally:
            inside -= 1

    monkeypatch.setattr("dragoman_ask.asker.add", counted)
    async with asking([query(COUNT)], examples_dir=tmp_path) as (gateway, _):
        await gateway.ask("How many orders?")
        rate = gateway.asker().rate
        with (tmp_path / ".lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            marking = [asyncio.create_task(rate(Principal(), "How many orders?", right=True)) for _ in range(40)]
            while not most:
                await asyncio.sleep(0.001)
            for each in marking[:10]:
                each.cancel()
            async with asyncio.timeout(5):
                ended = await asyncio.gather(*marking, return_exceptions=True)
        assert {type(each) for each in ended} == {asyncio.CancelledError, Busy}
        assert max(most) == 1
        assert await rate(Principal(), "How many orders?", right=True) == "shop.yaml"


async def test_a_long_list_of_examples_holds_nobody_up(asking, tmp_path):
    words = [f"w{number:02x}" for number in range(900)]
    chosen = random.Random(1)
    lines = (f"- question: {' '.join(chosen.choices(words, k=6))}\n  sql: SELECT 1\n" for _ in range(7_000))
    (tmp_path / "shop.yaml").write_text("".join(lines))
    async with asking([query(COUNT)] * 2, examples_dir=tmp_path) as (gateway, _):
        await gateway.ask("How many?")
        asked, loop = asyncio.ensure_future(gateway.ask(" ".join(words))), asyncio.get_running_loop()
        pauses = []
        while not asked.done():
            before = loop.time()
            await asyncio.sleep(0)
            pauses.append(loop.time() - before)
    assert max(pauses) < 0.5, "it was 2 seconds"


async def test_a_full_file_takes_no_more_marks(asking, tmp_path):
    """Without a limit one caller could make every question of all others wait until the file is read."""
    before = "# " + "x" * (examples.FULL - 100) + "\n- question: Who?\n  sql: SELECT 1\n"
    (tmp_path / "shop.yaml").write_text(before)
    async with asking([query(COUNT)], examples_dir=tmp_path) as (gateway, _):
        await gateway.ask("How many orders?")
        with pytest.raises(ConfigurationError, match="full"):
            await gateway.asker().rate(Principal(), "How many orders?", right=True)
    assert (tmp_path / "shop.yaml").read_text() == before


async def test_the_file_of_examples_is_read_once_until_it_changes(asking, tmp_path, monkeypatch):
    read = []
    monkeypatch.setattr(examples, "load_cases", lambda file: read.append(file) or load_cases(file))
    (tmp_path / "shop.yaml").write_text("- question: How many?\n  sql: SELECT 1\n")
    async with asking([query(COUNT)] * 3, examples_dir=tmp_path) as (gateway, model):
        await gateway.ask("How many orders?")
        await gateway.ask("How many customers?")
        assert len(read) == 1
        (tmp_path / "shop.yaml").write_text("- question: How many?\n  sql: SELECT 12\n")
        await gateway.ask("How many customers?")
    assert (len(read), "SELECT 12" in model.last()) == (2, True)


async def test_only_an_answer_of_ones_own_can_be_marked(asking, tmp_path):
    async with asking([query(COUNT)], examples_dir=tmp_path) as (gateway, _):
        await gateway.ask(Question(text="How many?", principal=Principal("ada", subject="ada")))
        with pytest.raises(ParameterError, match="no answer"):
            await gateway.asker().rate(Principal("ben", subject="ben"), "How many?", right=True)
    assert list(tmp_path.glob("*.yaml")) == []


async def test_without_a_folder_nothing_is_marked(asking):
    async with asking([query(COUNT)]) as (gateway, _):
        assert "rate_answer" not in {tool.name for tool in Toolbox(gateway, profile="full").tools}
        with pytest.raises(ConfigurationError, match="No folder"):
            await gateway.asker().rate(Principal(), "How many?", right=True)


def test_examples_are_ranked_by_the_words_they_share():
    cases = [
        Case(question=text, sql="x") for text in ("Revenue by month", "Open orders by customer", "Orders by month")
    ]
    found = rank("How many orders each month?", cases, lambda case: case.question)
    assert [case.question for case in found] == [
        "Orders by month",
        "Revenue by month",
        "Open orders by customer",
    ]
    assert rank("What is the weather?", cases, lambda case: case.question) == []


async def test_a_mark_that_cannot_be_recorded_is_not_kept(asking, tmp_path, monkeypatch):
    marked = {"question": "How many orders are there?", "right": True}
    audit = Audit(path=tmp_path / "audit" / "calls.jsonl")
    async with asking(lambda _: query(COUNT), examples_dir=tmp_path / "examples", audit=audit) as (gateway, _):
        toolbox = Toolbox(gateway, profile="full")
        await toolbox.call("ask", {"question": "How many orders are there?"})
        with monkeypatch.context() as broken:
            broken.setattr(AuditFile, "append", _fail)
            assert "could not be recorded" in (await toolbox.call("rate_answer", marked)).text
        assert not (tmp_path / "examples").exists()
        assert (await toolbox.call("rate_answer", marked)).structured == {"kept": "shop.yaml"}


def _fail(*_: object) -> None:
    raise OSError(28, "No space left on device")
