package runtimeapi

// The error types of Lambda.
const (
	TypeTimeout      = typeTimeout
	TypeExit         = typeExit
	TypeEntrypoint   = typeEntrypoint
	TypeResponseSize = typeResponseSize
)
