module github.com/sqsonce/sqsonce/internal/release

go 1.26.0

require (
	github.com/sqsonce/sqsonce v0.0.0
	golang.org/x/mod v0.41.0
)

replace github.com/sqsonce/sqsonce => ../..
