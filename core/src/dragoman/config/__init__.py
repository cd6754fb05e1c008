"""Files, environment and command line become values here. The only reader of the environment."""

from dragoman.config.loading import load
from dragoman.config.settings import Configuration, Server
from dragoman.config.showing import STARTER, show
from dragoman.config.urls import is_path, parse_named, parse_url, split_name

__all__ = ["STARTER", "Configuration", "Server", "is_path", "load", "parse_named", "parse_url", "show", "split_name"]
