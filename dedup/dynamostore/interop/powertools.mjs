// Runs Powertools for AWS Lambda's idempotency utility by the commands on standard input, one a line.
//
//   {"id": 1, "op": "run", "prefix": "billing", "payload": ..., "remaining": 5000, "then": "return" | "throw" | "wait",
//    "validate": "Customer"}     // the part of the payload that Powertools compares with that of the first call
//   {"id": 1, "op": "finish", "then": "return" | "throw"}     for a waiting run
//
// Every run answers {"id", "event": "started"} if its function was called, and {"id", "event": "done", "result", "error"}.
import { createInterface } from "node:readline";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { IdempotencyConfig, makeIdempotent } from "@aws-lambda-powertools/idempotency";
import { DynamoDBPersistenceLayer } from "@aws-lambda-powertools/idempotency/dynamodb";

const [endpoint, tableName] = process.argv.slice(2);
const client = new DynamoDBClient({ endpoint, region: "us-east-1", credentials: { accessKeyId: "test", secretAccessKey: "test" } });
const say = (what) => process.stdout.write(JSON.stringify(what) + "\n");
const waiting = new Map();

async function run({ id, prefix, payload, remaining, then, retention, validate }) {
  const config = new IdempotencyConfig({ expiresAfterSeconds: retention ?? 3600, payloadValidationJmesPath: validate });
  if (remaining) config.registerLambdaContext({ getRemainingTimeInMillis: () => remaining });
  const call = makeIdempotent(
    async () => {
      say({ id, event: "started" });
      const end = then === "wait" ? await new Promise((resolve) => waiting.set(id, resolve)) : then;
      if (end === "throw") throw new Error("the function failed");
      return { by: "powertools", id };
    },
    { persistenceStore: new DynamoDBPersistenceLayer({ tableName, awsSdkV3Client: client }), config, keyPrefix: prefix },
  );
  try {
    say({ id, event: "done", result: (await call(payload)) ?? null });
  } catch (e) {
    say({ id, event: "done", error: e.name });
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  if (command.op === "finish") waiting.get(command.id)(command.then);
  else run(command);
}
