package memsqs

// LimitInFlight sets the quota of messages in flight: a test of 120,000 would take seconds.
func (s *Server) LimitInFlight(n int) { s.maxInFlight = n }
