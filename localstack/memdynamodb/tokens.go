package memdynamodb

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"time"

	"github.com/sqsonce/sqsonce/localstack/internal/awsjson"
)

// tokenLife is how long the repetition of a transaction with the same ClientRequestToken does nothing.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
const tokenLife = 10 * time.Minute

// tokens are the ClientRequestTokens of the transactions that were made. The token of a cancelled transaction is not
// among them: its repetition is a new attempt. The older ones are forgotten all at once: SDKs send a token with every transaction,
// too many to look at each time, and a map does not shrink.
type tokens struct {
	recent, older map[string]usedToken
	since         time.Time // when the recent ones began
}

type usedToken struct {
	request [sha256.Size]byte
	until   time.Time
	tx      *transaction
}

// done reports whether the transaction was already made under its token, within tokenLife.
func (k *tokens) done(in *transactWriteInput, now time.Time) (bool, error) {
	if in.ClientRequestToken == nil {
		return false, nil
	}
	used, ok := k.recent[*in.ClientRequestToken]
	if !ok {
		used, ok = k.older[*in.ClientRequestToken]
	}
	if !ok || !now.Before(used.until) {
		return false, nil
	}
	if used.request != in.digest() {
		return false, awsjson.Invalid("IdempotentParameterMismatchException", "The request uses the same client token as a previous, but non-identical request. Do not reuse a client token with different requests, unless the requests are identical")
	}
	if used.tx.left.Load() > 0 {
		return false, awsjson.Invalid("TransactionInProgressException", "The transaction with the given request token is already in progress.")
	}
	return true, nil
}

// add stores the token of a transaction that was made, for tokenLife at least.
func (k *tokens) add(in *transactWriteInput, now time.Time, tx *transaction) {
	if in.ClientRequestToken == nil {
		return
	}
	if k.recent == nil || now.Sub(k.since) >= tokenLife {
		k.older, k.recent, k.since = k.recent, map[string]usedToken{}, now
	}
	k.recent[*in.ClientRequestToken] = usedToken{in.digest(), now.Add(tokenLife), tx}
}

// digest is equal for requests with equal actions. The order of the members of an object does not count: clients write Go
// maps in another order each time.
func (in *transactWriteInput) digest() [sha256.Size]byte {
	var b bytes.Buffer
	for _, raw := range in.TransactItems {
		var v any
		_ = json.Unmarshal(raw, &v) // [Server.changes] has read it without an error
		sorted, _ := json.Marshal(v)
		b.Write(sorted)
		b.WriteByte('\n')
	}
	return sha256.Sum256(b.Bytes())
}
