package main

import (
	"bytes"
	"compress/gzip"
	"hash/crc32"
	"net/http"
	"strconv"
	"strings"
)

// leastGzip is the size from which an answer is compressed.
const leastGzip = 1 << 10

// gzipped compresses the answers of h for clients that ask for it. DynamoDB's checksum is that of the compressed body.
func gzipped(h http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			h.ServeHTTP(rw, r)
			return
		}
		whole := &whole{ResponseWriter: rw, status: http.StatusOK}
		h.ServeHTTP(whole, r)
		body := whole.body.Bytes()
		if len(body) >= leastGzip {
			var packed bytes.Buffer
			z := gzip.NewWriter(&packed)
			_, _ = z.Write(body) // a Buffer returns no errors
			_ = z.Close()
			body = packed.Bytes()
			rw.Header().Set("Content-Encoding", "gzip")
			rw.Header().Set("Content-Length", strconv.Itoa(len(body)))
			if rw.Header().Get("X-Amz-Crc32") != "" {
				rw.Header().Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10))
			}
		}
		rw.WriteHeader(whole.status)
		_, _ = rw.Write(body) // the client disconnected
	})
}

// whole keeps an answer's body until it is complete.
type whole struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (w *whole) WriteHeader(status int)      { w.status = status }
func (w *whole) Write(p []byte) (int, error) { return w.body.Write(p) }
