package main

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/sqsonce/sqsonce/localstack/internal/awsjson"
)

// isOwn reports whether a request is for localaws itself, or for a path that nothing has. AWS's calls are POST requests, to / or with a
// header of AWS, or they are of the query protocol, which is refused.
func isOwn(r *http.Request) bool {
	unknown := r.URL.Path != "/" && r.Header.Get("X-Amz-Target") == "" && r.Header.Get("Authorization") == "" && !awsjson.Query(r)
	return unknown || awsjson.Health(r) || strings.HasPrefix(r.URL.Path, "/_localaws/")
}

// sameOrigin reports whether no page of another origin makes the request: tools other than browsers send no Origin.
func sameOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	u, err := url.Parse(origin)
	return origin == "" || err == nil && u.Host == r.Host
}

// allowed reports whether a request may change more than a service does by its headers, which a page of another origin cannot send.
func allowed(r *http.Request, cors string) bool {
	return sameOrigin(r) || cors == "*" || r.Header.Get("Origin") == cors
}

// crossOrigin lets the pages of an origin call h from a browser; "": none, as on AWS.
func crossOrigin(origin string, h http.Handler) http.Handler {
	if origin == "" {
		return h
	}
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		head := rw.Header()
		head.Set("Access-Control-Allow-Origin", origin)
		head.Set("Access-Control-Expose-Headers", "Date, X-Amzn-Requestid, X-Amz-Crc32, X-Amzn-Query-Error, X-Amzn-Errortype, X-Amz-Function-Error, X-Amz-Executed-Version")
		if r.Method == http.MethodOptions {
			head.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT")
			head.Set("Access-Control-Allow-Headers", r.Header.Get("Access-Control-Request-Headers"))
			rw.WriteHeader(http.StatusNoContent)
			return
		}
		h.ServeHTTP(rw, r)
	})
}
