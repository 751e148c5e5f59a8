package doctor

func functionChecks() []check { return nil }
