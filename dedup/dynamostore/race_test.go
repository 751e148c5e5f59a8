//go:build race

package dynamostore

const raceDetector = true
