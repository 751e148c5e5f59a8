// Package counting is the contract of a limit.Counter, between package limit and the stores. Package limittest is its suite.
package counting

import (
	"context"
	"errors"
	"time"
)

// Errors of a [Counter].
var (
	// ErrTaken says that another owner has the slot.
	ErrTaken = errors.New("limit: slot taken")
	// ErrLeaseLost says that the slot has another owner, or none.
	ErrLeaseLost = errors.New("limit: slot's lease lost")
)

// Counter counts for all processes of a fleet. The stores of package dedup have one each. Package limittest has a case for each
// sentence here.
type Counter interface {
	// Take takes up to t.N tokens of a key, in one write. Tokens have times, one every t.Step, but for t.Burst of them at
	// once. It grants the tokens whose times are within t.Ahead. Where there is none it grants one whose time is within
	// t.Reach. Else it grants none, and says when to ask again.
	//
	// In any time T the tokens with their times in it are at most T/Step + Burst. Each token is granted once.
	Take(ctx context.Context, t Take) (Grant, error)
	// Line gives n messages their places in the key's line, in one write, each step after the one before. It returns the
	// time until the first place. It doesn't take a token.
	Line(ctx context.Context, key string, n int, step time.Duration) (time.Duration, error)
	// Acquire makes owner the owner of a slot for the lease. It returns ErrTaken while another owner's lease lasts.
	Acquire(ctx context.Context, slot, owner string, lease time.Duration) error
	// Renew extends the lease, counted from now. It returns ErrLeaseLost if owner is not the slot's owner.
	Renew(ctx context.Context, slot, owner string, lease time.Duration) error
	// Release frees the slot at once, if owner is the slot's owner.
	Release(ctx context.Context, slot, owner string) error
}

// Take is the argument of [Counter].Take.
type Take struct {
	Key   string
	N     int           // how many tokens, at least 1
	Step  time.Duration // between the times of two tokens
	Burst int           // how many tokens have the same time after a rest, at least 1
	Ahead time.Duration // tokens up to this far in the future are granted
	Reach time.Duration // one token up to this far in the future is granted if Ahead has none
	// NotBefore, if positive, moves the key's tokens to this far in the future, never back: a pause.
	NotBefore time.Duration
	// Waited says that the caller's message has had its place in the line. Others wait while the line is more than a
	// second long.
	Waited bool
}

// Grant is the answer to a [Take].
type Grant struct {
	N     int           // how many tokens
	From  time.Duration // until the time of the first one, from the call's return; negative if it has passed
	Step  time.Duration // between two of them
	After time.Duration // if N is 0: when to ask again
}
