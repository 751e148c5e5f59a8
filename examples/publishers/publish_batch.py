import sys

import boto3

from eventkey import event_key

queue, *rest = sys.argv[1:]
source, fifo = "orders", queue.endswith(".fifo")
text = lambda value: {"DataType": "String", "StringValue": value}
entries = [
    {
        "Id": str(n),
        "MessageBody": body,
        "MessageGroupId": group,
        "MessageAttributes": {"event-id": text(id), "event-source": text(source), "event-type": text("order.placed")},
        **({"MessageDeduplicationId": event_key(source, id)} if fifo else {}),
    }
    for n, (id, group, body) in enumerate(zip(*[iter(rest)] * 3))
]
answer = boto3.client("sqs").send_message_batch(QueueUrl=queue, Entries=entries)
if answer.get("Failed"):  # the call succeeds all the same
    sys.exit(f"not sent, send them again: {answer['Failed']}")
