"""The release, where it costs nothing to read: the metadata of the distribution takes longer than all else at start."""

VERSION = "0.1.0"
