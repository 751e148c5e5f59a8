//go:build race

package outboxmodel

const raceDetector = true
