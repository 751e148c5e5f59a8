package settle

import "context"

// Ran tells the host whether the handler has been called, where middleware may decide a delivery without it: a duplicate, a message
// that is skipped or rejected. The outcome then says nothing about what handlers need. Without a call a host takes it for called. It
// does nothing where ctx is not from a host.
func Ran(ctx context.Context, ran bool) {
	if s, ok := ctx.Value(settlementKey{}).(*settlement); ok {
		s.unrun.Store(!ran)
		if ran {
			s.before.Store(false)
		}
	}
}

// HasRun returns what Ran told last. ctx is that of [New].
func HasRun(ctx context.Context) bool {
	s, ok := ctx.Value(settlementKey{}).(*settlement)
	return !ok || !s.unrun.Load()
}
