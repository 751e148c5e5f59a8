package host

import "time"

const (
	maxConsumer = 64

	// ControlConsumer stands in place of a consumer in the keys of package control. No consumer has this name.
	ControlConsumer = "sqsonce.control"
	// LeastControl and MostControl are the limits of how long a state of package control lasts.
	LeastControl = 30 * time.Second
	MostControl  = 7 * 24 * time.Hour
)

// Consumer adds the problem of a name that no consumer can have. A name has no '#', so that a record's key splits at its first '#'
// into consumer and event.
func (p *Problems) Consumer(name string) {
	ok := len(name) >= 1 && len(name) <= maxConsumer
	for i := range len(name) {
		c := name[i]
		ok = ok && ('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '/' || c == '-')
	}
	p.Add(!ok, "consumer", "is %q, must be 1 to %d of A-Z a-z 0-9 . _ / -", name, maxConsumer)
	p.Add(name == ControlConsumer, "consumer", "is %q, the name of the records of package control", name)
}
