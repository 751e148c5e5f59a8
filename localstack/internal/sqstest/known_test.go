package sqstest_test

const (
	notSender  = "calls a failed entry the service's fault"
	noAttempts = "ignores ReceiveRequestAttemptId"
	noSource   = "does not name the source queue"
	ownDedupID = "the deduplication ID stays as it was sent"
	otherText  = "has a text of its own"

	oldestFirst = "returns the oldest message first, whatever its group"
)

var localstackKnown = map[string]string{
	"content/eleven attributes refused":                           "accepts eleven",
	"content/attribute without a value refused":                   "accepts an empty Number",
	"content/attribute of an unknown type refused":                "takes whatever begins with a known type",
	"content/attribute number that is none refused":               "accepts any text as a number",
	"content/attribute names refused":                             "accepts successive periods",
	"content/attribute names accepted":                            "refuses 256 characters",
	"content/system attributes refused":                           "accepts other names and types",
	"batch/one bad entry fails alone":                             notSender,
	"batch/delete fails by entry":                                 notSender,
	"batch/visibility fails by entry":                             notSender,
	"batch/send: entry ID refused":                                "takes letters of any alphabet",
	"visibility/less than 0 refused":                              "accepts -1 s",
	"visibility/more than 12 h of a receive refused":              "has no limit of 12 h",
	"visibility/12 h in all, counted from the receive":            "has no limit of 12 h in all",
	"visibility/more than 12 h refused, changes nothing":          "has no limit of 12 h",
	"visibility/change in a batch beyond 12 h fails by entry":     "has no limit of 12 h in all",
	"handle/delete with a superseded one deletes nothing":         "deletes",
	"delay/longer or negative refused":                            "accepts 901 s",
	"delay/change moves what a FIFO queue has":                    "a new delay of the queue is for new messages only",
	"queue/of another Region":                                     "takes the Region from the queue's URL",
	"queue attributes/values out of range refused":                "accepts a DelaySeconds of 901",
	"queue attributes/throughput per group needs scope per group": "accepts the one without the other",
	"redrive/FIFO takes the message ID for deduplication":         ownDedupID,
	"redrive policy/not JSON refused":                             "answers 500, and keeps it",
	"redrive policy/unknown target refused":                       "does not look for the target",
	"redrive policy/target of the other type refused":             "does not compare the types",
	"move/back to the source":                                     "the moved message keeps its ID",
	"move/receive count starts anew":                              "the moved message keeps its count",
	"recorded/groups free by deletes in the order of sending":     "puts them behind those that wait",
	"group lock/released follower waits for the head":             "returns the follower while the head is in flight",
	"group lock/released head comes back before its follower":     "returns what follows the message in flight",
	"FIFO handle/delete with a superseded one refused":            "deletes",
	"FIFO handle/delete in a batch after expiry fails by entry":   notSender,
	"dedup/answer to a duplicate":                                 "the sequence number is a new one",
	"dedup scope/group: groups in turn":                           "remembers the last group of an ID only",
	"fair/quiet tenants before a noisy one":                       oldestFirst,
	"fair/messages without a group before a noisy tenant":         oldestFirst,
	"fair/quiet tenants before a slow one":                        oldestFirst,
	"fair/noisy tenant with the fewest in flight first":           oldestFirst,
	"attempt/repeated, same messages and handles":                 noAttempts,
	"attempt/repeated, visibility starts anew":                    noAttempts,
	"attempt/IDs refused":                                         noAttempts,
	"wire/malformed JSON":                                         "answers 500",
	"wire/value of a wrong type":                                  "answers 500",
	"wire/unknown operation":                                      "answers 500",
	"wire/unsigned request":                                       "takes requests without a signature",
	"wire/queue URL missing":                                      "answers that the queue does not exist",
	"wire/errors have the codes of the Query protocol":            "accepts a delay of 901 s",
	"wire/errors in a batch have bare codes":                      "accepts a delay of 901 s",
	"recorded/one encryption at a time":                           "accepts both",
	"recorded/KMS ends the encryption by SQS":                     "keeps both",
	"recorded/move whose destination was deleted":                 "names the error by its shape",
	"recorded/period of a key without the key":                    "keeps the encryption by SQS beside the key",
	"recorded text/empty batches, types and characters":           "has no text for an empty batch",
	"recorded text/redrive policy without an ARN":                 "accepts it",
	"recorded text/message or batch too long":                     "has one text for messages and entries",
}

var motoKnown = map[string]string{
	"visibility/less than 0 refused":                          "accepts -1 s",
	"visibility/12 h begin anew with a receive":               "counts from the first receive",
	"visibility/change in a batch beyond 12 h fails by entry": "fails the whole request",
	"redrive/FIFO takes the message ID for deduplication":     ownDedupID,
	"redrive/names its source":                                noSource,
	"redrive/FIFO names its source":                           noSource,
	"move/is listed":                                          "answers 500",
}
