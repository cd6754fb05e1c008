"""A question becomes a judged query and its rows, on a real database, with a model behind a real socket."""

import asyncio
import json
import sqlite3

import pytest
from dragoman import AmbiguousQuery, ModelError, UnknownDatabase, Unsupported, WriteDenied
from dragoman.config import ModelSettings
from dragoman.gateway.asking import Question, Turn
from dragoman.tools import Toolbox
from dragoman_ask.asker import ModelAsker
from scripted import VALID, query, says

COUNT = "SELECT count(*) AS orders FROM orders"


async def test_a_question_is_answered_by_rows_of_the_database(asking):
    async with asking([query(COUNT)]) as (gateway, model):
        answer = await gateway.ask("How many orders are there?")
    assert answer.result.rows == [[200]]
    assert (answer.sql, answer.database, answer.attempts, answer.confidence) == (COUNT, "shop", 1, "high")
    assert len(model.requests) == 1


async def test_the_model_is_told_schema_dialect_question_and_form(asking):
    async with asking([query(COUNT)]) as (gateway, model):
        await gateway.ask("How many orders are there?")
    system, user = (message["content"] for message in model.requests[0]["messages"])
    assert "sqlite" in system
    assert "CREATE TABLE orders" in user
    assert "REFERENCES customers" in user
    assert user.endswith("How many orders are there?")
    form = model.requests[0]["response_format"]["json_schema"]
    assert form["strict"] is True
    assert set(form["schema"]["required"]) == set(form["schema"]["properties"])


async def test_the_model_is_told_what_is_indexed(asking, shop):
    with sqlite3.connect(shop.folder / "shop.db") as connection:
        connection.execute("CREATE INDEX by_status ON orders (status)")
    connection.close()
    async with asking([query(COUNT)]) as (gateway, model):
        await gateway.ask("How many orders are there?")
    assert "CREATE INDEX by_status ON orders (status);" in model.last()


async def test_a_query_that_fails_is_written_again_with_the_error(asking):
    async with asking([query("SELECT totl FROM orders"), query(COUNT)]) as (gateway, model):
        answer = await gateway.ask("How many?")
    assert answer.attempts == 2
    assert answer.confidence == "medium"
    assert "COLUMN_NOT_FOUND" in model.last()
    assert "total" in model.last()


async def test_after_three_queries_the_last_error_is_told(asking):
    async with asking([query("DELETE FROM orders")] * 3) as (gateway, _):
        with pytest.raises(WriteDenied) as caught:
            await gateway.ask("Delete all")
    assert caught.value.context["attempts"] == 3
    assert caught.value.context["sql"] == "DELETE FROM orders"


async def test_an_empty_answer_is_checked_and_the_query_repaired(asking):
    empty = query("SELECT * FROM orders WHERE status = 'PAID'")
    doubt = {"valid": False, "reason": "Compare status in lower case."}
    good = query("SELECT count(*) FROM orders WHERE status = 'paid'")
    async with asking([empty, doubt, good], send="values") as (gateway, model):
        answer = await gateway.ask("How many orders are paid?")
    assert answer.result.rows == [[50]]
    assert "It found nothing." in model.last(1)
    assert "Compare status in lower case." in model.last(2)


async def test_an_empty_answer_that_is_right_stays(asking):
    async with asking([query("SELECT * FROM orders WHERE status = 'void'"), VALID]) as (gateway, _):
        answer = await gateway.ask("Which orders are void?")
    assert answer.result.row_count == 0
    assert answer.confidence == "medium"


async def test_a_doubt_that_lasts_is_told(asking):
    replies = [query("SELECT * FROM orders WHERE total < 0"), {"valid": False, "reason": "Odd."}]
    async with asking(replies, max_attempts=1) as (gateway, _):
        answer = await gateway.ask("Which orders are negative?")
    assert answer.confidence == "low"
    assert answer.assumptions == ("The model doubts this answer: Odd.",)


async def test_an_ambiguous_question_is_asked_back(asking):
    async with asking([says("clarify", "By revenue or by number of orders?")]) as (gateway, _):
        with pytest.raises(AmbiguousQuery, match="By revenue or by number") as caught:
            await gateway.ask("Who is the best customer?")
    assert caught.value.context["ask"] == "By revenue or by number of orders?"


async def test_what_the_database_does_not_hold_is_refused(asking):
    async with asking([says("refuse", "There is nothing about the weather.")]) as (gateway, _):
        with pytest.raises(Unsupported, match="nothing about the weather"):
            await gateway.ask("Will it rain?")


async def test_the_database_is_picked_and_the_reason_told(asking, shop, warehouse):
    replies = [{"database": "warehouse", "reason": "It has the stock.", "clarify": ""}, query("SELECT * FROM stock")]
    async with asking(replies, shop, warehouse) as (gateway, model):
        answer = await gateway.ask("How many bolts?")
    assert (answer.database, answer.reason) == ("warehouse", "It has the stock.")
    assert "shop (sqlite): Orders Tables: customers, orders" in model.last(0)
    assert "customers" not in model.last(1)


async def test_a_database_that_is_not_there_is_not_picked(asking, shop, warehouse):
    async with asking([{"database": "secret", "reason": "", "clarify": ""}], shop, warehouse) as (gateway, _):
        with pytest.raises(ModelError, match="does not exist"):
            await gateway.ask("How many bolts?")


async def test_where_several_fit_the_caller_is_asked(asking, shop, warehouse):
    replies = [{"database": "", "reason": "", "clarify": "Ordered or in stock?"}]
    async with asking(replies, shop, warehouse) as (gateway, _):
        with pytest.raises(AmbiguousQuery) as caught:
            await gateway.ask("How many bolts?")
    assert caught.value.context["databases"] == ["shop", "warehouse"]


async def test_an_unknown_database_costs_no_call_of_the_model(asking):
    async with asking([]) as (gateway, model):
        with pytest.raises(UnknownDatabase):
            await gateway.ask("How many?", "shp")
    assert model.requests == []


async def test_sql_alone_is_judged_and_explained_but_not_run(asking):
    async with asking([query("SELECT nope FROM orders"), query(COUNT)]) as (gateway, _):
        answer = await gateway.ask(Question(text="How many?", return_type="sql"))
    assert answer.result is None
    assert (answer.sql, answer.attempts) == (COUNT, 2)


async def test_a_query_runs_where_the_database_tells_no_cost(asking):
    async with asking([query(COUNT)], max_plan_cost=0.001) as (gateway, _):
        assert (await gateway.ask("How many?")).result.rows == [[200]]


async def test_a_follow_up_knows_what_was_asked_before(asking):
    question = Question(text="And by status?", history=[Turn("How many orders?", COUNT)])
    async with asking([query("SELECT status, count(*) FROM orders GROUP BY 1")]) as (gateway, model):
        await gateway.ask(question)
    assert "Question: How many orders?" in model.last()
    assert COUNT in model.last()


async def test_candidates_vote_by_what_they_find(asking):
    wrong = query("SELECT count(*) FROM customers")
    replies = [wrong, query(COUNT), query("SELECT sum(1) FROM orders")]
    async with asking(replies, candidates=3) as (gateway, _):
        answer = await gateway.ask("How many orders?")
    assert answer.result.rows == [[200]]
    assert answer.attempts == 1


async def test_columns_in_another_order_are_the_same_vote(asking):
    first = query("SELECT status, count(*) AS n FROM orders GROUP BY status")
    second = query("SELECT count(*) AS n, status FROM orders GROUP BY status")
    wrong = query("SELECT 'open' AS status, 7 AS n")
    async with asking([wrong, first, second], candidates=3) as (gateway, _):
        answer = await gateway.ask("How many orders of each status?")
    assert answer.result.rows == [["open", 150], ["paid", 50]]


class LastFails:
    """A model that keeps all but the last of three waiting, and refuses that one when the others wait."""

    def __init__(self):
        self.calls = self.ended = 0

    async def complete(self, messages, shape, max_tokens):
        self.calls += 1
        if self.calls == 3:
            raise ModelError("no")
        try:
            return await asyncio.Future()  # of a reply that never comes
        finally:
            self.ended += 1

    async def aclose(self):
        pass


async def test_candidates_end_with_the_first_that_fails_for_good(asking):
    """Else they would go on, and be paid for, when the question has its answer."""
    model = LastFails()
    asker = ModelAsker(ModelSettings(name="x:y", candidates=3), model=model)
    async with asking([]) as (gateway, _), gateway.call("ask", database="shop") as record:
        with pytest.raises(ModelError, match="no"):
            await asker.ask(gateway, record, Question(text="How many?", database="shop"))
        assert (model.calls, model.ended) == (3, 2)


async def test_the_tool_answers_a_result_with_how_it_came_about(asking):
    async with asking([query(COUNT, assumptions=["All orders count."])]) as (gateway, _):
        answer = await Toolbox(gateway, profile="full").call("ask", {"question": "How many?", "return_type": "both"})
    assert answer.structured == {
        "columns": ["orders"],
        "types": ["integer"],
        "rows": [[200]],
        "row_count": 1,
        "explanation": "What was asked.",
        "confidence": "high",
        "assumptions": ["All orders count."],
        "attempts": 1,
        "sql": COUNT,
    }
    assert answer.meta["dragoman/model_use"] == {
        "model": "openai:scripted", "calls": 1, "input_tokens": 100, "output_tokens": 20
    }  # fmt: skip


async def test_a_question_asked_back_is_an_error_with_its_code_and_what_it_used(asking):
    async with asking([says("clarify", "Which year?")]) as (gateway, _):
        answer = await Toolbox(gateway, profile="full").call("ask", {"question": "How many?"})
    error = json.loads(answer.text)["error"]
    assert (error["code"], error["message"]) == ("AMBIGUOUS_QUERY", "Which year?")
    assert answer.meta["dragoman/model_use"]["input_tokens"] == 100


async def test_progress_is_told(asking):
    told = []

    async def report(done, total, message):
        told.append(message)

    async with asking([query(COUNT)]) as (gateway, _):
        await gateway.ask(Question(text="How many?", report=report))
    assert told == ["reading the schema", "writing a query", "running the query"]
