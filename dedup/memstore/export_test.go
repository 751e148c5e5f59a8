package memstore

// Len is the number of records in memory, including those whose retention is over.
func (s *Store) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.records)
}
