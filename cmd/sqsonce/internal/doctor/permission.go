package doctor

func permissionChecks() []check { return nil }
