package awsjson

import (
	"net/http"
	"strings"
)

// Scope is the scope of a request's signature. Its fields are "" where the request does not name them.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/create-signed-request.html
type Scope struct{ AccessKey, Region, Service string }

// ScopeOf reads the header Authorization: AWS4-HMAC-SHA256 Credential=KEY/DATE/REGION/SERVICE/aws4_request, ...
func ScopeOf(r *http.Request) Scope {
	_, credential, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
	credential, _, _ = strings.Cut(credential, ",")
	parts := strings.Split(strings.TrimSpace(credential), "/")
	if len(parts) != 5 {
		return Scope{}
	}
	return Scope{parts[0], parts[2], parts[3]}
}

// Valid reports whether the Region can be one of AWS.
func (s Scope) Valid() bool {
	return strings.Trim(s.Region, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}
