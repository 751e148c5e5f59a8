//go:build race

package otelsqs_test

const raceEnabled = true
