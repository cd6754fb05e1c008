"""What holds for every test of the workspace."""

import os

from hypothesis import settings

pytest_plugins = ["pytester"]

# A run that decides whether a change lands must not depend on chance; everybody else's runs look for new cases.
settings.register_profile("dragoman", derandomize="CI" in os.environ, deadline=None)
settings.load_profile("dragoman")
