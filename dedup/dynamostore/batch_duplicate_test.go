package dynamostore

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
)

// Several deliveries of one event at the same instant: never in one batch, and one of them is granted.
func TestDuplicatesInOneBatch(t *testing.T) {
	onBed(t, func(t *testing.T, b *bed) {
		s := b.storeWithPeer()
		claims := claimsOf(4)
		claims[1].Key, claims[2].Key = claims[0].Key, claims[0].Key
		_, errs := acquireAll(t.Context(), s, claims)
		var granted, held int
		for _, err := range errs[:3] {
			switch {
			case err == nil:
				granted++
			case errors.Is(err, sqsonce.ErrInProgress):
				held++
			default:
				t.Errorf("Acquire of a duplicate: got error %v", err)
			}
		}
		if granted != 1 || held != 2 || errs[3] != nil {
			t.Errorf("%d of three duplicates granted, %d in progress, the fourth event %v; want 1, 2, nil", granted, held, errs[3])
		}
		if got := s.Stats(); got.Batches != 1 || got.Statements != 2 {
			t.Errorf("%d statements in %d batches, want one for each of the two events, in one batch", got.Statements, got.Batches)
		}
	})
}

// A duplicate in a batch is found by one read: 1 write unit and 1 read unit.
func TestDuplicateInABatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		before func(*bed, *Store, dedup.Claim)
		want   func(dedup.Lease, error) bool
		ops    []string
		units  float64 // beyond those of the new event beside it
	}{
		{"completed", func(b *bed, s *Store, c dedup.Claim) { b.complete(s, b.acquire(s, c)) },
			func(_ dedup.Lease, err error) bool { return isCompleted(err) }, []string{batchCall, "GetItem"}, 2},
		{"held", func(b *bed, s *Store, c dedup.Claim) { b.acquire(s, c) },
			func(_ dedup.Lease, err error) bool { return errors.Is(err, sqsonce.ErrInProgress) }, []string{batchCall, "GetItem"}, 2},
		{"released", func(b *bed, s *Store, c dedup.Claim) { b.release(s, b.acquire(s, c)) },
			func(l dedup.Lease, err error) bool { return err == nil && l.LastError == "failed" && !l.Takeover }, []string{batchCall, "GetItem", "UpdateItem"}, 3},
		{"crashed", func(b *bed, s *Store, c dedup.Claim) { b.acquire(s, c); time.Sleep(2 * lease) },
			func(l dedup.Lease, _ error) bool { return l.Takeover }, []string{batchCall, "GetItem", "UpdateItem"}, 3},
	} {
		runBed(t, c.name, func(t *testing.T, b *bed) {
			s := b.storeWithPeer()
			claims := claimsOf(2)
			first := claims[0]
			first.Owner = "the first"
			c.before(b, s, first)
			sent := len(b.srv.Calls())
			leases, errs := acquireAll(t.Context(), s, claims)
			if !c.want(leases[0], errs[0]) || errs[1] != nil {
				t.Errorf("Acquire: got %+v, %v, and of a new event beside it %v", leases[0], errs[0], errs[1])
			}
			if got := b.ops(sent); !cmp.Equal(got, c.ops) {
				t.Errorf("calls: got %v, want %v", got, c.ops)
			}
			if got := b.units(sent) - 1; got != c.units {
				t.Errorf("capacity units of the duplicate: got %.1f, want %.1f", got, c.units)
			}
		})
	}
}

// A record that refused an INSERT and then cannot be read, or is gone: the update decides.
func TestDuplicateThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, read := range map[string]func() (*dynamodb.GetItemOutput, error){
		"not allowed": func() (*dynamodb.GetItemOutput, error) {
			return nil, &smithy.GenericAPIError{Code: "AccessDeniedException"}
		},
		"no answer": func() (*dynamodb.GetItemOutput, error) { return nil, io.ErrUnexpectedEOF },
		"gone":      func() (*dynamodb.GetItemOutput, error) { return &dynamodb.GetItemOutput{}, nil },
	} {
		runBed(t, name, func(t *testing.T, b *bed) {
			s := b.storeWithPeer()
			claims := claimsOf(2)
			first := claims[0]
			first.Owner = "the first"
			b.complete(s, b.acquire(s, first))
			s.client = blind{s.client, read}
			_, errs := acquireAll(t.Context(), s, claims)
			if !isCompleted(errs[0]) || errs[1] != nil {
				t.Errorf("Acquire: got %v, want completed and nil", errs)
			}
		})
	}
}

// blind is a client whose reads a test answers.
type blind struct {
	Client
	read func() (*dynamodb.GetItemOutput, error)
}

func (b blind) GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return b.read()
}
