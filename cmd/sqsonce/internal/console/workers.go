package console

import (
	"context"
	"time"
)

func (s *Server) workersRoutes() {}

// rates are those of one queue in one process, a second.
type rates struct{ done, failed float64 }

// readWorkers asks the workers how they are.
func (p *sampler) readWorkers(context.Context) { p.workersAt = time.Time{} }

func ratesOf(map[string]rates, Queue) (rates, bool) { return rates{}, false }
