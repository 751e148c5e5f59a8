package memdynamodb

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"time"

	"github.com/sqsonce/sqsonce/localstack/internal/awsjson"
)

// tokenLife is how long a ClientRequestToken makes a repeated transaction do nothing.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
const tokenLife = 10 * time.Minute

// tokens remembers the transactions that were made. A cancelled one is not remembered: its repetition is a new attempt.
type tokens map[string]usedToken

type usedToken struct {
	request [sha256.Size]byte
	until   time.Time
}

// seen reports whether the request's transaction was made within the life of its token.
func (k tokens) seen(in *transactWriteInput, now time.Time) (bool, error) {
	if in.ClientRequestToken == nil {
		return false, nil
	}
	used, ok := k[*in.ClientRequestToken]
	if !ok || !now.Before(used.until) {
		return false, nil
	}
	if used.request != in.digest() {
		return false, awsjson.Invalid("IdempotentParameterMismatchException", "The request uses the same client token as a previous, but non-identical request. Do not reuse a client token with different requests, unless the requests are identical")
	}
	return true, nil
}

// keep remembers the request, and forgets those whose life is over.
func (k *tokens) keep(in *transactWriteInput, now time.Time) {
	if in.ClientRequestToken == nil {
		return
	}
	if *k == nil {
		*k = tokens{}
	}
	for t, used := range *k {
		if !now.Before(used.until) {
			delete(*k, t)
		}
	}
	(*k)[*in.ClientRequestToken] = usedToken{in.digest(), now.Add(tokenLife)}
}

// digest is equal for requests with equal parameters, however the members of their maps are ordered: clients write Go
// maps in a new order each time.
func (in *transactWriteInput) digest() [sha256.Size]byte {
	var b bytes.Buffer
	for _, raw := range in.TransactItems {
		var v any
		_ = json.Unmarshal(raw, &v) // it has been read before
		sorted, _ := json.Marshal(v)
		b.Write(sorted)
		b.WriteByte('\n')
	}
	return sha256.Sum256(b.Bytes())
}
