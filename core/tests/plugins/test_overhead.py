"""At statement time there is no pluggy: what the hooks returned is called, and nothing of theirs."""

import sys

from dragoman import Database, Gateway, WrappedInspector


async def test_no_hook_is_called_and_no_code_of_pluggys_runs_while_a_statement_does(install):
    install("dragoman-odd", "plugin = PretendPlugin()", dialects={"pretend": "plugin"}, pretend=True)
    install("dragoman-calm", "from dragoman import *\nplugin = PolicyPlugin()", policies={"calm": "plugin"})
    seen: set[str] = set()

    def note(frame, event, argument):
        # pytest's own import hook traces with pluggy's tracer whatever is imported meanwhile.
        module = frame.f_globals.get("__name__", "")
        if event == "call" and module.startswith("pluggy") and module != "pluggy._tracing":
            seen.add(frame.f_code.co_qualname)

    async with Gateway.open([Database(name="x", dialect="pretend")]) as gateway:
        sys.setprofile(note)
        try:
            gateway.database("x")
            opening = set(seen)
            seen.clear()
            for number in range(3):
                await gateway.query("x", f"SELECT {number}")
                await gateway.sample("x", "things")
        finally:
            sys.setprofile(None)
    assert opening, "the profile sees pluggy where it is"
    assert seen == set()


async def test_the_executor_the_gateway_has_is_the_one_the_plugin_made(install):
    install("dragoman-odd", "plugin = PretendPlugin()", dialects={"pretend": "plugin"}, pretend=True)
    async with Gateway.open([Database(name="x", dialect="pretend")]) as gateway:
        assert type(gateway.database("x").executor).__name__ == "PretendExecutor"
        inspector = gateway.database("x").inspector
        assert isinstance(inspector, WrappedInspector)
        assert type(inspector.inner).__name__ == "PretendInspector"
