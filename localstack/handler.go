package localstack

import (
	"net/http"

	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

// Handler serves both services on one port, told apart by their X-Amz-Target header as the AWS protocol has it. A GET of
// any path answers 200, for health checks.
func Handler(q *memsqs.Server, d *memdynamodb.Server) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodGet:
			w.WriteHeader(http.StatusOK)
		case d.Serves(r):
			d.ServeHTTP(w, r)
		default:
			q.ServeHTTP(w, r) // also answers what neither knows, in AWS's shape
		}
	})
}
