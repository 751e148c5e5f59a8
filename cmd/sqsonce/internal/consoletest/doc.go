// Package consoletest tests the pages of sqsonce console in Chromium, as people use them. It is a module of its own: nothing that is
// shipped gets a library that drives browsers. `make console-test` runs it; the environment variable BROWSER says what happens
// without a browser (internal/testserver).
package consoletest
