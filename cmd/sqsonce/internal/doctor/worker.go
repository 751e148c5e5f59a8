package doctor

func workerChecks() []check { return nil }
