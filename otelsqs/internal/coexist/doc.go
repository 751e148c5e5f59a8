// Package coexist has the tests of otelsqs beside what else a program uses: the instrumentation of the AWS SDK and of aws-lambda-go.
package coexist
