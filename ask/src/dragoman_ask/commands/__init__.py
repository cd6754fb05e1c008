"""Commands of the command line: `dragoman ask`, `dragoman eval`."""
