package host

const (
	// NoConsumer is the problem of a name that [IsConsumer] refuses, with the name.
	NoConsumer  = "is %q, must be 1 to 64 of A-Z a-z 0-9 . _ / -"
	maxConsumer = 64

	// ControlConsumer stands in place of a consumer in the keys of package control. No consumer has this name.
	ControlConsumer = "sqsonce.control"
)

// IsConsumer reports whether s can be a consumer's name. It has no '#', so that a record's key splits at its first '#' into
// consumer and event.
func IsConsumer(s string) bool {
	for i := range len(s) {
		c := s[i]
		ok := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '/' || c == '-'
		if !ok {
			return false
		}
	}
	return len(s) >= 1 && len(s) <= maxConsumer
}
