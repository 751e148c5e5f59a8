package memsqs

// LimitInFlight sets the quota of messages in flight: 120,000 of them take seconds to make.
func (s *Server) LimitInFlight(n int) { s.maxInFlight = n }
