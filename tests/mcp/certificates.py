"""Certificates of a server for tests, and what a client needs to trust them."""

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import trustme


def certify(folder: Path, authority: trustme.CA, days: int = 9) -> int:
    """Write a new certificate, valid for so many days from now, and its key; return its number."""
    now = datetime.now(UTC)
    begins, ends = now - timedelta(days=9), now + timedelta(days=days)
    certificate = authority.issue_cert("localhost", "127.0.0.1", not_before=begins, not_after=ends)
    (folder / "tls").mkdir(exist_ok=True)
    (folder / "tls" / "key.pem").write_bytes(certificate.private_key_pem.bytes())
    chain = b"".join(blob.bytes() for blob in certificate.cert_chain_pems)
    (folder / "tls" / "cert.pem").write_bytes(chain)
    from cryptography.x509 import load_pem_x509_certificate

    return load_pem_x509_certificate(chain).serial_number


def trusting(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context
