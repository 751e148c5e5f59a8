// Package suites has the tests that `make aws` runs on AWS. It has no other code, and without the build tag aws no tests.
package suites
