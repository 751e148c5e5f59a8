package settle

import "context"

// Ran tells the host whether the handler has been called, where middleware may decide a delivery without it: a duplicate, a message
// that is skipped or rejected. The outcome then says nothing about what handlers need. It does nothing where ctx is not from a host.
func Ran(ctx context.Context, ran bool) {
	if s, ok := ctx.Value(settlementKey{}).(*settlement); ok {
		s.unrun.Store(!ran)
		if !ran {
			s.skips.Add(1)
			return
		}
		s.calls.Add(1)
		s.before.Store(false)
	}
}

// HasRun returns what Ran told last, and whether it told that the handler is called at all. Without a call of Ran a host takes the handler
// for called, unless middleware tells that of its other messages. ctx is that of [New].
func HasRun(ctx context.Context) (ran, told bool) {
	s, ok := ctx.Value(settlementKey{}).(*settlement)
	if !ok {
		return true, false
	}
	return !s.unrun.Load(), s.calls.Load() > 0
}

// Told returns how often Ran has told each until now, for middleware that asks about its own handler: another one may be around it, or
// in it. ctx may be any within that of [New].
func Told(ctx context.Context) (calls, skips int64) {
	if s, ok := ctx.Value(settlementKey{}).(*settlement); ok {
		return s.calls.Load(), s.skips.Load()
	}
	return 0, 0
}
