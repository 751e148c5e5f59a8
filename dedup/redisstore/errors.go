package redisstore

import (
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// What can be wrong with a server. A [*ServerError] matches one of them.
var (
	// ErrEviction: the server may forget any record when its memory is full, and the handler runs again.
	ErrEviction = errors.New("maxmemory-policy is not noeviction")
	// ErrVolatile: the server keeps nothing, or too little, over a restart. See the package documentation for what is lost.
	ErrVolatile = errors.New("no append-only file: a restart forgets records")
	// ErrReplica: the server is a replica, which takes no writes.
	ErrReplica = errors.New("the server is a read-only replica")
	// ErrVersion: the server is older than Redis 5, whose scripts cannot both ask for the time and write.
	ErrVersion = errors.New("the server is older than Redis 5")
	// ErrMemory: the server's memory is full. It refuses new records, and so nothing runs.
	ErrMemory = errors.New("the server's memory is full")
	// ErrDisk: the server cannot write its files and therefore refuses to write at all.
	ErrDisk = errors.New("the server cannot write its files")
	// ErrAccessDenied: the user may not do this, or the password is wrong.
	ErrAccessDenied = errors.New("access was refused")
)

// ErrRecord says that a key of the store's holds something that the store did not write. It is left as it is.
var ErrRecord = errors.New("redisstore: the key holds no record")

// ServerError says why a server cannot be used. No retry mends it.
type ServerError struct {
	// Problem is one of the errors above.
	Problem error
	// Detail is what was found, or what was tried.
	Detail string
	// Err is the server's answer, if it refused something.
	Err error
}

func (e *ServerError) Error() string {
	s := fmt.Sprintf("redisstore: %v (%s)", e.Problem, e.Detail)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the problem and the server's answer.
func (e *ServerError) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Problem}
	}
	return []error{e.Problem, e.Err}
}

var problems = []struct {
	code    string
	problem error
}{
	{"READONLY", ErrReplica},
	{"OOM", ErrMemory},
	{"MISCONF", ErrDisk},
	{"NOAUTH", ErrAccessDenied},
	{"WRONGPASS", ErrAccessDenied},
	{"NOPERM", ErrAccessDenied},
	{"The user executing the script can't run", ErrAccessDenied},     // Redis 6, of a command inside the script
	{"ERR The user executing the script can't run", ErrAccessDenied}, // Redis 7.0
	{"ERR ACL failure in script", ErrAccessDenied},                   // later ones
}

// explain gives an operation's final error its type and its name.
func explain(op string, err error) error {
	if err == nil {
		return nil
	}
	answer, isAnswer := errors.AsType[redis.Error](err)
	if isAnswer && says(answer, "WRONGTYPE") {
		return fmt.Errorf("%w: %s: %w", ErrRecord, op, err)
	}
	for _, p := range problems {
		if isAnswer && says(answer, p.code) {
			return &ServerError{Problem: p.problem, Detail: op, Err: err}
		}
	}
	return fmt.Errorf("redisstore: %s: %w", op, err)
}
