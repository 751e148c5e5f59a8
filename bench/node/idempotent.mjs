// The handler in the idempotency utility of Powertools for AWS Lambda. The key is the event's ID.
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { IdempotencyConfig, makeIdempotent } from "@aws-lambda-powertools/idempotency";
import { DynamoDBPersistenceLayer } from "@aws-lambda-powertools/idempotency/dynamodb";
import { options, sockets } from "./clients.mjs";
import { handle, job } from "./session.mjs";

export function idempotent() {
  const config = new IdempotencyConfig({});
  // Outside Lambda the utility does not know how long a handler may run, and a crash would block its event for an hour.
  // The visibility timeout takes the place of the function's timeout.
  config.registerLambdaContext({ getRemainingTimeInMillis: () => job.visibility * 1000 });
  const run = makeIdempotent((_id, body) => handle(body), {
    persistenceStore: new DynamoDBPersistenceLayer({
      tableName: job.table,
      awsSdkV3Client: new DynamoDBClient({ ...options, requestHandler: sockets() }),
    }),
    config,
    keyPrefix: "bench",
  });
  return (message) => run({ id: JSON.parse(message.Body).id }, message.Body);
}
