"""The audit: one sealed record per call, written before its answer leaves."""

from dragoman.audit.chain import Link
from dragoman.audit.file import AuditFile, moment
from dragoman.audit.record import Event, Record, encode
from dragoman.audit.report import Report, records, report
from dragoman.audit.verify import Fault, Verification, verify_files

__all__ = [
    "AuditFile",
    "Event",
    "Fault",
    "Link",
    "Record",
    "Report",
    "Verification",
    "encode",
    "moment",
    "records",
    "report",
    "verify_files",
]
