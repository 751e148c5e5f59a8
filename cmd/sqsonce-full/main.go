// Command sqsonce-full is the command sqsonce, also for records in PostgreSQL, MySQL, MariaDB and Redis:
//
//	sqsonce-full --store postgres://user@host/database record ls
//
// It is a module of its own because drivers are large. See package cli for key functions and other stores.
package main

import (
	"github.com/sqsonce/sqsonce/cmd/sqsonce/cli"
)

func main() {
	cli.Main(func(o *cli.Options) { o.Name, o.StoreURL = "sqsonce-full", open })
}
