// Package coexist has the tests of otelsqs next to the other instrumentation of a program: that of the AWS SDK and of aws-lambda-go.
package coexist
