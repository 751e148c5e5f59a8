package dynamostore

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/granted"
)

// foreign puts an item that another program has written.
func (b *bed) foreign(item values) {
	b.Helper()
	item[attrID] = text(testKey)
	must.Get(b.client(b.srv).PutItem(b.Context(), &dynamodb.PutItemInput{TableName: aws.String(testTable), Item: item}))(b)
}

func seconds(d time.Duration) ddbtypes.AttributeValue { return number(time.Now().Add(d).Unix()) }
func millisIn(d time.Duration) ddbtypes.AttributeValue {
	return number(time.Now().Add(d).UnixMilli())
}

// Records as Powertools for AWS Lambda writes them have neither owner nor fence.
func TestPowertoolsRecordsAreRespected(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		item func() values
		want func(dedup.Grant, error) bool
	}{
		{"in progress in Lambda", func() values {
			return values{attrStatus: text(inProgress), TTLAttribute: seconds(time.Hour), attrUntil: millisIn(15 * time.Second)}
		}, isHeld},
		{"in progress in Lambda, crashed", func() values {
			return values{attrStatus: text(inProgress), TTLAttribute: seconds(time.Hour), attrUntil: millisIn(-15 * time.Second)}
		}, isTakenOver},
		{"in progress in Lambda, its retention shorter than the function", func() values {
			return values{attrStatus: text(inProgress), TTLAttribute: seconds(-time.Minute), attrUntil: millisIn(15 * time.Second)}
		}, isHeld},
		{"in progress outside Lambda", func() values {
			return values{attrStatus: text(inProgress), TTLAttribute: seconds(time.Hour)}
		}, func(g dedup.Grant, err error) bool {
			// Not before the second after its expiration has begun on the clock of a takeover.
			return isHeld(g, err) && time.Until(g.Until) >= time.Hour+time.Second+takeoverMargin && time.Until(g.Until) < time.Hour+time.Minute
		}},
		{"in progress outside Lambda, expired", func() values {
			return values{attrStatus: text(inProgress), TTLAttribute: seconds(-time.Minute)}
		}, isTakenOver},
		{"completed, Python", func() values {
			return values{attrStatus: text(completed), TTLAttribute: seconds(time.Hour), "data": text(`{"id":1}`), "validation": text("hash")}
		}, isDone(`{"id":1}`)},
		{"completed, TypeScript", func() values {
			return values{attrStatus: text(completed), TTLAttribute: seconds(time.Hour), "data": &ddbtypes.AttributeValueMemberM{Value: values{
				"id":    number(1),
				"items": &ddbtypes.AttributeValueMemberL{Value: []ddbtypes.AttributeValue{text("a"), &ddbtypes.AttributeValueMemberBOOL{Value: true}, &ddbtypes.AttributeValueMemberNULL{Value: true}}},
			}}, "validation": text("hash")}
		}, isDone(`{"id":1,"items":["a",true,null]}`)},
		{"completed, retention over", func() values {
			return values{attrStatus: text(completed), TTLAttribute: seconds(-time.Minute), "data": text(`{}`), attrUntil: millisIn(-time.Hour)}
		}, func(g dedup.Grant, _ error) bool { return g.Verdict == dedup.VerdictGranted && !g.Lease.Takeover }},
		{"completed, retention over, with a fence far ahead", func() values {
			return values{attrStatus: text(completed), TTLAttribute: seconds(-time.Minute), attrFence: millisIn(time.Hour)}
		}, func(g dedup.Grant, _ error) bool { return g.Lease.Fence > time.Now().Add(59*time.Minute).UnixMilli() }},
	} {
		for _, dated := range []bool{true, false} {
			name := c.name
			if !dated {
				name += ", before any date"
			}
			runStore(t, name, func(t *testing.T, b *bed, s *Store) {
				if dated {
					if _, err := s.Inspect(t.Context(), testKey); !errors.Is(err, dedup.ErrNotFound) {
						t.Fatal(err)
					}
				}
				b.foreign(c.item())
				if g, err := s.Acquire(t.Context(), claim("a")); !c.want(g, err) {
					t.Errorf("Acquire: got %+v, %v", g, err)
				}
			})
		}
	}
}

func isHeld(g dedup.Grant, _ error) bool { return g.Verdict == dedup.VerdictInProgress }

func isTakenOver(g dedup.Grant, _ error) bool { return g.Lease.Takeover }

func isDone(data string) func(dedup.Grant, error) bool {
	return func(g dedup.Grant, _ error) bool {
		return g.Verdict == dedup.VerdictCompleted && string(g.Result.Data) == data && g.Result.Validation == "hash"
	}
}

// Under the policies that block the record of a crashed holder, one without a lease end is free after its retention.
func TestPowertoolsCrashIsBlocked(t *testing.T) {
	onStore(t, func(t *testing.T, b *bed, s *Store) {
		c := claim("a")
		c.NoTakeover = true
		b.foreign(values{attrStatus: text(inProgress), TTLAttribute: seconds(time.Hour), attrUntil: millisIn(-15 * time.Second)})
		if _, err := granted.Lease(s.Acquire(t.Context(), c)); !errors.Is(err, dedup.ErrCrashed) {
			t.Errorf("Acquire with NoTakeover: got error %v, want ErrCrashed", err)
		}
		b.foreign(values{attrStatus: text(inProgress), TTLAttribute: seconds(-time.Minute)})
		b.acquire(s, c)
	})
}

// The hashes are those of the npm package, version 2.35.0. Package interop compares them.
func TestPowertoolsKey(t *testing.T) {
	t.Parallel()
	for payload, want := range map[string]string{
		`"order-42"`:              "WLnM11idtSdsnsi97teW6w==",
		`{"B":1,"a":-0.0}`:        "WQESy2R3lKm/k7lXGD/znw==",
		`{"b":1,"A":[true,null]}`: "UZ8iOXA5Nyjt5OcGDZ+UMw==",
	} {
		got, err := PowertoolsKey([]byte(payload))
		same, sameErr := PowertoolsKey([]byte(" " + payload + "\n"))
		if err != nil || sameErr != nil || got != want || same != want {
			t.Errorf("%s: got %q, %v, and with space around it %q, %v, want %q", payload, got, err, same, sameErr, want)
		}
	}
	for _, payload := range []string{``, `{`, `1 2`, `{"a":1,"A":2}`, `[{"ID":1,"id":2}]`,
		`{"__proto__":{"a":1}}`, `[{"a":1,"\u005f_proto__":2}]`, `{"aΣ":1,"b":2}`,
		`"\ud800"`, `"\udc00\ud800"`, `"\ud800x"`, `"\ud800\n"`, `{"\uDBFF":1}`, "\"\xff\""} {
		if got, err := PowertoolsKey([]byte(payload)); err == nil {
			t.Errorf("%s: got %q, want an error", payload, got)
		}
	}
}

// The order is that of Powertools' own sort, and then of a JavaScript object: array indexes are 0 to 2^32-2.
func TestPowertoolsKeyOrder(t *testing.T) {
	t.Parallel()
	want := []string{"0", "9", "10", "4294967294", "-1", "01", "1.0", "4294967295", "4294967296", "a", "B", "c"}
	for seed := range uint64(20) {
		got := slices.Clone(want)
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
		slices.SortFunc(got, compareKeys)
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("order (-want +got):\n%s", d)
		}
	}
}
