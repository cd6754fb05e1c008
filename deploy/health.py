"""Ask the server of this container whether it lives: exit status 0 if it answers, else 1. The argument is its port.

The scheme of the configuration comes first, since a server logs a warning about a client that uses the other one.
"""

import os
import ssl
import sys
import tomllib
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path


def speaks_tls() -> bool:
    """Whether the environment or the configuration file names a certificate."""
    with suppress(OSError, KeyError, ValueError, AttributeError):
        text = Path(os.environ["DRAGOMAN_CONFIG"]).read_text(encoding="utf-8")
        if tomllib.loads(text).get("server", {}).get("tls_cert"):
            return True
    return bool(os.environ.get("DRAGOMAN_SERVER__TLS_CERT"))


def answers(scheme: str) -> bool:
    """Whether `/health` answers. The certificate is not looked at: it has another name."""
    address = "127.0.0.1", int(sys.argv[1])
    if scheme == "https":
        connection = HTTPSConnection(*address, timeout=2, context=ssl._create_unverified_context())
    else:
        connection = HTTPConnection(*address, timeout=2)
    with suppress(OSError, HTTPException):
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    return False


if __name__ == "__main__":
    schemes = ("https", "http") if speaks_tls() else ("http", "https")
    # The other one is for a server that was started with another configuration.
    sys.exit(not any(map(answers, schemes)))
