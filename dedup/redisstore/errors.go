package redisstore

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
)

// These errors are the problems of a server. An error of such a server matches one of them.
var (
	// errEviction says that the server may delete any record when its memory is full. The record's handler then runs
	// again.
	errEviction = errors.New("server may evict records: set maxmemory-policy to noeviction")
	// errVolatile says that the server loses records at a restart. See the package documentation.
	errVolatile = errors.New("server has no append-only file and loses records at a restart: set appendonly to yes, or accept it with Options.Volatile")
	// errReplica says that the server is a replica, which refuses writes. A failover can cause it for a while.
	errReplica = errors.New("server is a read-only replica: connect to the master")
	// errVersion says that the server is older than Redis 5, whose scripts can't ask for the time and then write.
	errVersion = errors.New("server is older than Redis 5")
	// errMemory says that the server's memory is full. It refuses new records, so handlers don't run.
	errMemory = errors.New("server's memory is full: raise maxmemory or shorten the retention")
	// errDisk says that the server can't write its files, and therefore refuses all writes.
	errDisk = errors.New("server cannot write its files: check its disk")
	// errAccessDenied says that the user may not run a command, or that the password is wrong.
	errAccessDenied = errors.New("access denied: check the user, its password and its permissions")
	// errCommand says that the server doesn't know, or refuses, a command of the store or of its client.
	errCommand = errors.New("server refuses a command that the store needs: check the client's options and the commands that are disabled or renamed")
	// errNotTold says that the server doesn't say how it is configured. Only [Store.Check] returns it.
	errNotTold = errors.New("server does not say how it is configured: allow INFO, or make sure of maxmemory-policy noeviction and appendonly yes")
)

// serverError says why a server can't be used. It matches [sqsonce.ErrUnavailable]. It also matches
// [sqsonce.ErrMisconfigured], unless the problem is errReplica, errMemory or errDisk, which may end by themselves.
type serverError struct {
	// Problem is one of the errors above.
	Problem error
	// Detail is the value that was found, or the operation.
	Detail string
	// Err is the server's error, if there is one.
	Err error
}

func (e *serverError) Error() string {
	s := fmt.Sprintf("redisstore: %v (%s)", e.Problem, e.Detail)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Is reports a match with [sqsonce.ErrUnavailable] and [sqsonce.ErrMisconfigured].
func (e *serverError) Is(target error) bool {
	passing := e.Problem == errReplica || e.Problem == errMemory || e.Problem == errDisk
	return target == sqsonce.ErrUnavailable || target == sqsonce.ErrMisconfigured && !passing
}

// Unwrap returns the problem and the server's error.
func (e *serverError) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Problem}
	}
	return []error{e.Problem, e.Err}
}

var problems = []struct {
	code    string
	problem error
}{
	{"READONLY", errReplica},
	{"OOM", errMemory},
	{"MISCONF", errDisk},
	{"NOAUTH", errAccessDenied},
	{"WRONGPASS", errAccessDenied},
	{"NOPERM", errAccessDenied},
	{"DENIED", errAccessDenied},                                       // protected mode
	{"ERR invalid password", errAccessDenied},                         // Redis 5
	{"ERR Client sent AUTH, but no password is set", errAccessDenied}, // Redis 5
	{"ERR AUTH <password> called without", errAccessDenied},           // no password is set
	{"The user executing the script can't run", errAccessDenied},      // Redis 6, for a command inside the script
	{"ERR The user executing the script can't run", errAccessDenied},  // Redis 7.0
	{"ERR ACL failure in script", errAccessDenied},                    // later versions
	{"ERR unknown command", errCommand},
	{"Unknown Redis command", errCommand},     // inside the script
	{"ERR Unknown Redis command", errCommand}, // Redis 7 and later
	{"ERR DB index", errCommand},              // SELECT
	{"ERR invalid DB index", errCommand},
	{"ERR SELECT is not allowed", errCommand}, // in a cluster
	{"ERR This instance has cluster support disabled", errCommand},
}

// explain gives an operation's final error its type and its name. A value that is no record matches dedup.ErrRecord. Any other
// error matches sqsonce.ErrUnavailable, whatever the server answered.
func explain(op string, err error) error {
	serverErr, isServer := errors.AsType[redis.Error](err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, dedup.ErrRecord):
		return fmt.Errorf("redisstore: %s: %w", op, err)
	case isServer && hasCode(serverErr, "WRONGTYPE"):
		return fmt.Errorf("redisstore: %s: %w: %w", op, dedup.ErrRecord, err)
	case errors.Is(err, redis.ErrClosed):
		return fmt.Errorf("%w: redisstore: %s: this program has closed the client: %w", sqsonce.ErrMisconfigured, op, err)
	}
	for _, p := range problems {
		if isServer && hasCode(serverErr, p.code) {
			return &serverError{Problem: p.problem, Detail: op, Err: err}
		}
	}
	return sqsonce.Unavailable(fmt.Errorf("redisstore: %s: %w", op, err))
}

// explainOwners is explain for a call of an owner. Where the data is no record, the owner's record is gone.
func explainOwners(op string, err error) error {
	if err = explain(op, err); errors.Is(err, dedup.ErrRecord) {
		return sqsonce.ErrLeaseLost
	}
	return err
}

// transientCodes are the errors of a server that is starting, that was the master until now or whose replicas are down, and
// of a cluster that moves slots or hasn't agreed on its nodes yet.
var transientCodes = []string{"LOADING", "READONLY", "MASTERDOWN", "NOREPLICAS", "CLUSTERDOWN", "TRYAGAIN", "MOVED", "ASK", "BUSY", "ERR max number of clients"}

// isTransient reports whether the same call may succeed later. An error that is not the server's is the network's, and
// counts as transient unless the client is closed.
func isTransient(err error) bool {
	serverErr, isServer := errors.AsType[redis.Error](err)
	if !isServer {
		return !errors.Is(err, redis.ErrClosed)
	}
	for _, code := range transientCodes {
		if hasCode(serverErr, code) {
			return true
		}
	}
	return false
}

// notExecuted reports whether the server has certainly not executed the call: it said so, or was never reached.
func notExecuted(err error) bool {
	if _, isServer := errors.AsType[redis.Error](err); isServer {
		return true
	}
	op, isOp := errors.AsType[*net.OpError](err)
	return isOp && op.Op == "dial" || errors.Is(err, redis.ErrPoolTimeout)
}

// hasCode reports whether a server's error has the code: at its beginning, or, before Redis 7, inside the error of a script
// in which a command was refused.
func hasCode(err redis.Error, code string) bool {
	text := err.Error()
	if inside, is := strings.CutPrefix(text, "ERR Error running script "); is {
		return strings.Contains(inside, ": -"+code) || strings.Contains(inside, ": "+code)
	}
	return strings.HasPrefix(text, code)
}
