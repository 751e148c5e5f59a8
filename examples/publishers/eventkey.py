import hashlib
import re

RESERVED = {"sha256", "sqs-event", "sqs-message", "sqs-dedup", "sns-message", "eventbridge-event", "s3-notification"}


def event_key(source, id):
    """Return what sqsonce.EventKey returns."""
    if not id:
        raise ValueError("the event has no ID")
    key = f"{source}|{id}"
    if re.fullmatch("[!-~]{1,128}", key) and "|" not in source and source not in RESERVED:
        return key
    return "sha256|" + hashlib.sha256(b"%d:%b%b" % (len(source.encode()), source.encode(), id.encode())).hexdigest()
