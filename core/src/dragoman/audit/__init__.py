"""The audit: one sealed record per call, written before the answer is sent."""

from dragoman.audit.chain import Link
from dragoman.audit.file import AuditFile, moment
from dragoman.audit.record import Event, Record, encode
from dragoman.audit.report import Report, records, report, stored_records
from dragoman.audit.stored import StoredAudit
from dragoman.audit.verify import Fault, Verification, verify_files, verify_stored

__all__ = [
    "AuditFile",
    "Event",
    "Fault",
    "Link",
    "Record",
    "Report",
    "StoredAudit",
    "Verification",
    "encode",
    "moment",
    "records",
    "report",
    "stored_records",
    "verify_files",
    "verify_stored",
]
