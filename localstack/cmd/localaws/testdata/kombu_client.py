"""Sends, receives and acknowledges with kombu, which finds the services by the environment alone."""

import os

import boto3
import kombu

connection = kombu.Connection("sqs://", transport_options={
    "region": os.environ["AWS_REGION"],
    "wait_time_seconds": 1,
    "visibility_timeout": 60,
})
sqs = boto3.client("sqs")


def size(name):
    url = sqs.get_queue_url(QueueName=name)["QueueUrl"]
    a = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    return int(a["ApproximateNumberOfMessages"]), int(a["ApproximateNumberOfMessagesNotVisible"])


with connection:
    # The first queue exists, kombu creates the others.
    for name in "jobs", "tasks", "tasks.fifo":
        producer = connection.Producer()
        queue = kombu.Queue(name, channel=producer.channel)
        queue.declare()
        bodies = [{"order": i, "text": "über"} for i in range(3)]
        for body in bodies:
            producer.publish(body, routing_key=name, serializer="json")
        got = []

        def handle(body, message):
            if not got:  # given back once
                got.append("requeued")
                message.requeue()
            else:
                got.append(body["order"])
                message.ack()

        with connection.Consumer([queue], callbacks=[handle]):
            while len(got) < 4:
                connection.drain_events(timeout=30)
        assert got[0] == "requeued" and sorted(got[1:]) == [0, 1, 2], (name, got)
        assert size(name) == (0, 0), (name, size(name))
        for _ in range(2):
            producer.publish(bodies[0], routing_key=name)
            queue.purge()
            assert size(name) == (0, 0), (name, size(name))
print("ok")
