// Programs that find the services by the environment alone. The argument names one: sdk, electrodb or sqs-consumer.
// It comes on standard input, so that Node.js finds the packages in the working directory.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { DynamoDBClient, CreateTableCommand } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient, GetCommand, PutCommand } from "@aws-sdk/lib-dynamodb";
import * as SQS from "@aws-sdk/client-sqs";
import { Entity, Service } from "electrodb";
import { Consumer } from "sqs-consumer";

const dynamodb = new DynamoDBClient({});
const sqs = new SQS.SQSClient({});

async function sdk() {
  const { QueueUrl } = await sqs.send(new SQS.GetQueueUrlCommand({ QueueName: "jobs" }));
  await sqs.send(new SQS.SendMessageCommand({ QueueUrl, MessageBody: "hello" }));
  console.log((await sqs.send(new SQS.ReceiveMessageCommand({ QueueUrl }))).Messages[0].Body);
  const records = DynamoDBDocumentClient.from(dynamodb);
  await records.send(new PutCommand({ TableName: "records", Item: { id: "a" } }));
  console.log((await records.send(new GetCommand({ TableName: "records", Key: { id: "a" } }))).Item.id);
}

async function electrodb() {
  const key = (pk, sk) => [{ AttributeName: pk, KeyType: "HASH" }, { AttributeName: sk, KeyType: "RANGE" }];
  await dynamodb.send(new CreateTableCommand({
    TableName: "shop",
    BillingMode: "PAY_PER_REQUEST",
    AttributeDefinitions: ["pk", "sk", "gsi1pk", "gsi1sk"].map((AttributeName) => ({ AttributeName, AttributeType: "S" })),
    KeySchema: key("pk", "sk"),
    GlobalSecondaryIndexes: [{ IndexName: "gsi1", KeySchema: key("gsi1pk", "gsi1sk"), Projection: { ProjectionType: "ALL" } }],
  }));
  const order = new Entity({
    model: { service: "shop", entity: "order", version: "1" },
    attributes: { id: { type: "string" }, customer: { type: "string" }, cents: { type: "number" } },
    indexes: {
      byID: { pk: { field: "pk", composite: ["id"] }, sk: { field: "sk", composite: [] } },
      byCustomer: { index: "gsi1", pk: { field: "gsi1pk", composite: ["customer"] }, sk: { field: "gsi1sk", composite: ["id"] } },
    },
  }, { client: dynamodb, table: "shop" });
  const shop = new Service({ order });

  await order.create({ id: "1", customer: "alice", cents: 100 }).go();
  assert.deepEqual((await order.get({ id: "1" }).go()).data, { id: "1", customer: "alice", cents: 100 });
  await assert.rejects(order.create({ id: "1", customer: "bob", cents: 1 }).go(), /conditional request failed/i);
  await assert.rejects(order.patch({ id: "1" }).add({ cents: 1 }).where(({ cents }, { gt }) => gt(cents, 100)).go(), /conditional request failed/i);

  const write = (cents) => shop.transaction.write(({ order }) => [
    order.create({ id: "2", customer: "alice", cents }).commit(),
    order.patch({ id: "1" }).add({ cents }).commit(),
  ]).go();
  assert.equal((await write(50)).canceled, false);
  const again = await write(70);
  assert.equal(again.canceled, true);
  assert.deepEqual(again.data.map(({ code }) => code), ["ConditionalCheckFailed", "None"]);
  const ofAlice = async (options) => {
    const page = await order.query.byCustomer({ customer: "alice" }).go(options);
    return [page.data.map(({ id, cents }) => `${id}:${cents}`).join(), page.cursor];
  };
  assert.deepEqual(await ofAlice(), ["1:150,2:50", null]);
  const [first, cursor] = await ofAlice({ limit: 1 });
  assert.deepEqual([first, (await ofAlice({ cursor }))[0]], ["1:150", "2:50"]);
  await order.remove({ id: "2" }).go();
  assert.deepEqual((await order.get({ id: "2" }).go()).data, null);
  console.log("ok");
}

async function queueOf(QueueName) {
  const { QueueUrl } = await sqs.send(new SQS.GetQueueUrlCommand({ QueueName }));
  // How many messages are visible, and in flight.
  const size = async () => {
    const { Attributes: a } = await sqs.send(new SQS.GetQueueAttributesCommand({ QueueUrl, AttributeNames: ["All"] }));
    return [a.ApproximateNumberOfMessages, a.ApproximateNumberOfMessagesNotVisible].map(Number);
  };
  const fill = async (...bodies) => {
    await sqs.send(new SQS.PurgeQueueCommand({ QueueUrl }));
    assert.deepEqual(await size(), [0, 0]);
    for (const MessageBody of bodies) {
      await sqs.send(new SQS.SendMessageCommand({ QueueUrl, MessageBody }));
    }
  };
  const consumer = (options) => Consumer.create({ queueUrl: QueueUrl, sqs, waitTimeSeconds: 1, handleMessage: async (m) => m, ...options });
  return { size, fill, consumer, metadata: { queueUrl: QueueUrl } };
}

// The first ten scenarios are those of sqs-consumer's own tests (test/features). They share a queue, and purge it before they send.
async function sqsConsumer() {
  const { size, fill, consumer, metadata } = await queueOf("jobs");
  // The arguments of the next event of the name.
  const next = (c, name) => new Promise((resolve) => c.once(name, (...args) => resolve(args)));
  const responses = (c, n) => new Promise((resolve) => c.on("response_processed", () => --n || resolve()));
  const stopped = async (c) => {
    const event = next(c, "stopped");
    c.stop();
    assert.equal(c.status.isRunning, false);
    return event;
  };
  const scenarios = {
    "an error without a message": async () => {
      const c = consumer({ sqs: { send() { throw new Error("cannot receive"); } }, pollingWaitTimeMs: 1000 });
      const error = next(c, "error");
      c.start();
      assert.deepEqual((await error).slice(1), [undefined, metadata]);
      await stopped(c);
    },
    "an error with a message": async () => {
      await fill("a");
      const failing = { send: (command, options) => {
        if (command instanceof SQS.DeleteMessageCommand) throw Object.assign(new Error("cannot delete"), { name: "SQSError" });
        return sqs.send(command, options);
      } };
      const c = consumer({ sqs: failing });
      const error = next(c, "error");
      c.start();
      const [, message, meta] = await error;
      assert.deepEqual([message.Body, meta], ["a", metadata]);
      await stopped(c);
    },
    "events of a message": async () => {
      await fill("a");
      const c = consumer();
      const events = ["message_received", "message_processed"].map((name) => next(c, name));
      c.start();
      for (const [message, meta] of await Promise.all(events)) {
        assert.deepEqual([message.Body, meta], ["a", metadata]);
      }
      await stopped(c);
    },
    "an empty queue": async () => {
      await fill();
      const c = consumer();
      const empty = next(c, "empty");
      c.start();
      assert.deepEqual(await empty, [metadata]);
      await stopped(c);
    },
    "start and stop": async () => {
      const c = consumer({ pollingCompleteWaitTimeMs: 30_000 }); // else its receive may get the next scenario's message
      const event = next(c, "started");
      c.start();
      assert.deepEqual([await event, c.status.isRunning], [[metadata], true]);
      assert.deepEqual(await stopped(c), [metadata]);
    },
    "a message": async () => {
      await fill("a");
      const c = consumer();
      const event = next(c, "response_processed");
      c.start();
      await event;
      await stopped(c);
      assert.deepEqual(await size(), [0, 0]);
    },
    "messages": async () => {
      await fill("a", "b", "c");
      const sizes = [];
      const c = consumer({ handleMessage: async (m) => { sizes.push(await size()); return m; } });
      const all = responses(c, 3);
      c.start();
      await all;
      await stopped(c);
      assert.deepEqual(sizes, [[2, 1], [1, 1], [0, 1]]);
    },
    "a batch": async () => {
      await fill("a", "b", "c", "d");
      let batch;
      const c = consumer({ batchSize: 5, handleMessageBatch: async (all) => { batch = all.map((m) => m.Body); return all; } });
      const event = next(c, "response_processed");
      c.start();
      await event;
      await stopped(c);
      assert.deepEqual([batch.sort(), await size()], [["a", "b", "c", "d"], [0, 0]]);
    },
    "batches": async () => {
      await fill("a", "b", "c", "d", "e", "f");
      const sizes = [];
      const c = consumer({ batchSize: 5, handleMessageBatch: async (all) => { sizes.push(all.length, await size()); return all; } });
      const both = responses(c, 2);
      c.start();
      await both;
      await stopped(c);
      assert.deepEqual(sizes, [5, [1, 5], 1, [0, 1]]);
    },
    "a stop with messages in flight": async () => {
      await fill("a", "b", "c");
      let processed = 0;
      const c = consumer({ batchSize: 10, pollingCompleteWaitTimeMs: 30_000, handleMessage: async (m) => { await sleep(500); return m; } });
      c.on("message_processed", () => processed++);
      c.start();
      await stopped(c);
      assert.deepEqual([processed, await size()], [3, [0, 0]]);
    },
    "an error leaves the message, the rest of its batch is deleted": async () => {
      await fill("a", "b");
      const counts = {};
      const c = consumer({
        batchSize: 10,
        terminateVisibilityTimeout: true,
        messageSystemAttributeNames: ["ApproximateReceiveCount"],
        handleMessage: async (m) => {
          (counts[m.Body] ??= []).push(m.Attributes.ApproximateReceiveCount);
          if (counts.b?.length === 1 && m.Body === "b") throw new Error("not yet");
          return m;
        },
      });
      const [error, both] = [next(c, "processing_error"), responses(c, 2)];
      c.start();
      assert.equal((await error)[1].Body, "b");
      await both;
      await stopped(c);
      assert.deepEqual([counts, await size()], [{ a: ["1"], b: ["1", "2"] }, [0, 0]]);
    },
    "heartbeats of a message and of a batch": () => Promise.all(["jobs", "beats"].map(async (name) => {
      const { size, fill, consumer, metadata } = await queueOf(name);
      await fill("a");
      const handler = async (work) => { // half a second longer than the receive hides the message
        await sleep(8500);
        assert.deepEqual(await size(), [0, 1]);
        return work;
      };
      const c = consumer({ visibilityTimeout: 8, heartbeatInterval: 2, [name === "jobs" ? "handleMessage" : "handleMessageBatch"]: handler });
      const events = ["error", "processing_error", "response_processed"].map((name) => next(c, name));
      c.start();
      assert.deepEqual(await Promise.race(events), [metadata]);
      await stopped(c);
      assert.deepEqual(await size(), [0, 0]);
    })),
  };
  for (const [name, run] of Object.entries(scenarios)) {
    await run().catch((err) => { throw new Error(name, { cause: err }); });
  }
  console.log("ok");
}

await { sdk, electrodb, "sqs-consumer": sqsConsumer }[process.argv[2]]();
