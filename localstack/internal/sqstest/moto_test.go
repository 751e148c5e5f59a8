package sqstest_test

var motoKnown = map[string]string{
	"visibility/less than 0 refused":                          "accepts -1 s",
	"visibility/12 h begin anew with a receive":               "counts from the first receive",
	"visibility/change in a batch beyond 12 h fails by entry": "fails the whole request",
}
