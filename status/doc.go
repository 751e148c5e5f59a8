// Package status is an HTTP handler with what a running worker knows: for probes, for people, for sqsonce top, the doctor and the
// console.
package status
