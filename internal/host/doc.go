// Package host is what the two hosts, the publisher, dedup and its stores share: recovery from panics, queue URLs and
// ARNs, entry IDs of batch calls, and backoff.
package host
