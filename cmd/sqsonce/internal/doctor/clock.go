package doctor

func clockChecks() []check { return nil }
