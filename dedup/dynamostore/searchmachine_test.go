package dynamostore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
)

const (
	searchLease     = time.Minute
	searchRetention = 2 * time.Hour
	searchStep      = 40 * time.Second // less than a lease; two are more, and three more than one of a host that is ahead
	effectsTable    = "effects"
	effectsItem     = `{"id":{"S":"n"},"n":{"N":"%d"}}`
)

// machine plays moves: the stores of all owners, on a server whose state it sets before each.
type machine struct {
	*testing.T
	scope  scope
	broken *breaker
	srv    *memdynamodb.Server
	now    time.Time
	stores [players]*Store
	probe  *Store

	// While a call is under way: who makes it, what becomes of its first packet, and what was sent.
	who    int
	fate   fate
	cancel context.CancelFunc
	sent   []sent
}

func newMachine(t *testing.T, sc scope, b *breaker) *machine {
	m := &machine{T: t, scope: sc, broken: b, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	bed := &bed{T: t}
	for i := range m.stores {
		s, err := New(bed.client(m), testTable, func(o *Options) { o.Now = func() time.Time { return m.now.Add(sc.skew[i]) } })
		if err != nil {
			t.Fatal(err)
		}
		m.stores[i] = s
	}
	m.probe = m.stores[players-1]
	return m
}

func (m *machine) close() {
	if m.srv != nil {
		m.srv.Close()
	}
}

func (m *machine) initial() *state {
	s := &state{now: m.now, items: map[string]string{effectsTable: fmt.Sprintf(effectsItem, 0)}, lost: m.scope.lost, late: m.scope.late, steps: m.scope.steps}
	s.facts.owner = -1
	for i := range s.owners {
		s.owners[i].clock = m.clockOf(m.stores[i])
	}
	return s
}

func (m *machine) clockOf(s *Store) clockState {
	return clockState{s.clock.lower, s.clock.upper, s.clock.synced}
}

// restore makes the server and the stores what the state says.
func (m *machine) restore(s *state) {
	m.now = s.now
	if m.srv == nil {
		m.srv = memdynamodb.New(func(o *memdynamodb.Options) { o.Now = func() time.Time { return m.now } })
		for _, table := range []string{testTable, effectsTable} {
			m.call("CreateTable", `{"TableName":"`+table+`","BillingMode":"PAY_PER_REQUEST","KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],"AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}]}`)
		}
		m.call("UpdateTimeToLive", `{"TableName":"`+testTable+`","TimeToLiveSpecification":{"AttributeName":"expiration","Enabled":true}}`)
	}
	for _, table := range []string{testTable, effectsTable} {
		switch want, got := s.items[table], m.item(table); {
		case want == got:
		case want == "":
			m.call("DeleteItem", `{"TableName":"`+table+`","Key":{"id":{"S":"`+testKey+`"}}}`)
		default:
			m.call("PutItem", `{"TableName":"`+table+`","Item":`+want+`}`)
		}
	}
	for i, store := range m.stores {
		c := s.owners[i].clock
		store.clock.lower, store.clock.upper, store.clock.synced = c.lower, c.upper, c.synced
	}
	m.sent = nil
}

// forget makes the next server a new one, which remembers no tokens: a late copy of a transaction has to be stopped by
// its condition alone.
func (m *machine) forget() {
	m.close()
	m.srv = nil
}

// item is the one item of a table, "" for none.
func (m *machine) item(table string) string {
	items := m.srv.Items(table)
	if len(items) == 0 {
		return ""
	}
	if bytes.Contains(items[0], []byte(`"tx"`)) {
		return string(someToken.ReplaceAll(items[0], []byte(`"tx":{"S":"token"}`))) // one is as good as another
	}
	return string(items[0])
}

func (m *machine) call(op, body string) {
	if got := (packet{op: op, body: body}).send(m.srv); got != "granted" {
		m.Fatalf("%s %s: %s", op, body, got)
	}
}

var someToken = regexp.MustCompile(`"tx":\{"S":"[^"]*"\}`)

// save puts into the state what a move has changed of the server and the stores.
func (m *machine) save(s *state) {
	for _, table := range []string{testTable, effectsTable} {
		s.items[table] = m.item(table)
	}
	for i, store := range m.stores {
		s.owners[i].clock = m.clockOf(store)
	}
	s.network = append(s.network, m.sent...)
}

// RoundTrip is every host's network.
func (m *machine) RoundTrip(r *http.Request) (*http.Response, error) {
	p, err := readPacket(r)
	if err != nil {
		return nil, err
	}
	edited := m.broken.edit(p)
	s := sent{packet: edited, who: m.who}
	if m.fate == heldBack {
		m.sent = append(m.sent, s)
		m.cancel() // its process gives up, or is told to
		return nil, errHeldBack
	}
	resp, err := m.srv.RoundTrip(edited.request(r.Context()))
	if err != nil {
		return nil, err
	}
	s.delivered, s.granted = true, resp.StatusCode == http.StatusOK
	if p.op != "DeleteItem" { // an operator does not send from a queue's worker
		m.sent = append(m.sent, s)
	}
	if m.fate == answerLost {
		m.cancel()
		return nil, errHeldBack
	}
	return resp, nil
}

// act runs a call of an owner under the fate that the network has for it.
func (m *machine) act(mv move, f func(context.Context, *Store) error) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	m.who, m.fate, m.cancel = mv.who, mv.fate, cancel
	return f(ctx, m.stores[mv.who])
}

func (m *machine) claim(who int) dedup.Claim {
	return dedup.Claim{Key: testKey, Owner: string(rune('A' + who)), Lease: searchLease, Retention: searchRetention, Attempt: 2}
}

// mistaken ends the search where DynamoDB does not understand a condition: one that was broken badly shows nothing.
func (m *machine) mistaken(err error) {
	if api, ok := errors.AsType[smithy.APIError](err); ok && api.ErrorCode() == "ValidationException" {
		m.Fatal(err)
	}
}

// effect is what a handler wants to have done once.
func effect() []ddbtypes.TransactWriteItem {
	return []ddbtypes.TransactWriteItem{{Update: &ddbtypes.Update{
		TableName: aws.String(effectsTable), Key: values{attrID: text("n")},
		UpdateExpression: aws.String("ADD n :one"), ExpressionAttributeValues: values{":one": number(1)},
	}}}
}

func effects(item string) int {
	var n int
	if _, err := fmt.Sscanf(item, effectsItem, &n); err != nil {
		panic(fmt.Sprintf("effects are %s: %v", item, err))
	}
	return n
}

// settle looks at what becomes of the key when every holder is gone and every lease over: it is completed, which
// somebody must have tried, or it can be had. What time can still do is left to the states that are later.
func (m *machine) settle(at *state) error {
	if at.steps > 0 {
		return nil
	}
	m.restore(at)
	m.now = m.now.Add(4 * searchStep)
	m.who, m.fate = players-1, arrives
	c := m.claim(players - 1)
	c.Owner = "the next delivery"
	_, err := m.probe.Acquire(context.Background(), c)
	m.mistaken(err)
	switch {
	case err == nil && at.facts.confirmed:
		return errors.New("a completed record was reopened")
	case isCompleted(err) && !at.facts.attempted:
		return errors.New("a delivery is told that the event was completed, and nobody tried")
	case err != nil && !isCompleted(err):
		return fmt.Errorf("the key cannot be had: %w", err)
	}
	return nil
}

// sweep lets the retention end and TTL delete what it may.
func (m *machine) sweep() int {
	m.now = m.now.Add(searchRetention + 2*time.Hour)
	return m.srv.SweepTTL()
}
