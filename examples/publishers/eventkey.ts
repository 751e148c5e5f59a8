import { createHash } from "node:crypto";

const reserved = ["sha256", "sqs-event", "sqs-message", "sqs-dedup", "sns-message", "eventbridge-event", "s3-notification"];

/** Returns what sqsonce.EventKey returns. */
export function eventKey(source: string, id: string): string {
  if (id === "") throw new Error("the event has no ID");
  const key = `${source}|${id}`;
  if (!key.isWellFormed()) throw new Error("the ID is not Unicode"); // the hash would be that of another ID
  if (/^[!-~]{1,128}$/.test(key) && !source.includes("|") && !reserved.includes(source)) return key;
  return "sha256|" + createHash("sha256").update(`${Buffer.byteLength(source)}:${source}${id}`).digest("hex");
}
