package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/aws/aws-sdk-go-v2/aws"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/granted"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
)

const (
	searchLease     = time.Minute
	searchRetention = 2 * time.Hour
	searchStep      = 40 * time.Second // less than a lease; two are more, and three more than one of a host that is ahead
	effectsTable    = "effects"
	effectsItem     = `{"id":{"S":"n"},"n":{"N":"%d"}}`
)

var errHeldBack = errors.New("the packet is held back")

// machine plays moves. It has the stores of all owners, and a server whose state it sets before each move.
type machine struct {
	*testing.T
	scope  scope
	broken *breaker
	srv    *memdynamodb.Server
	now    time.Time
	stores [players]*Store
	probe  *Store

	// Of the call that is under way: its owner, what the network does with its packets, and the packets that were sent.
	who     int
	transit transit
	cancel  context.CancelFunc
	sent    []sent
}

func newMachine(t *testing.T, sc scope, b *breaker) *machine {
	m := &machine{T: t, scope: sc, broken: b, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	bed := &bed{T: t}
	for i := range m.stores {
		s := must.Get(New(bed.client(m), testTable, func(o *Options) { o.now = func() time.Time { return m.now.Add(sc.skew[i]) } }))(t)
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
	return clockState{s.clock.lower, s.clock.upper, s.clock.fenced, s.clock.synced}
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
		case want == got && !strings.Contains(want, host.OperatorPrefix): // whose random part item hides
		case want == "":
			m.call("DeleteItem", `{"TableName":"`+table+`","Key":{"id":{"S":"`+testKey+`"}}}`)
		default:
			m.call("PutItem", `{"TableName":"`+table+`","Item":`+want+`}`)
		}
	}
	for i, store := range m.stores {
		c := s.owners[i].clock
		store.clock.lower, store.clock.upper, store.clock.synced, store.clock.fenced = c.lower, c.upper, c.synced, c.fenced
	}
	m.sent = nil
}

// forget makes the next server a new one, which knows no tokens: only the condition can refuse a late copy of a
// transaction.
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
	item := withoutRandom(string(items[0]))
	if strings.Contains(item, `"tx"`) {
		return someToken.ReplaceAllString(item, `"tx":{"S":"token"}`) // all tokens are equal for the search
	}
	return item
}

func (m *machine) call(op, body string) {
	if got := (packet{op: op, body: body}).send(m.srv); got != "granted" {
		m.Fatalf("%s %s: %s", op, body, got)
	}
}

var someToken = regexp.MustCompile(`"tx":\{"S":"[^"]*"\}`)

// save copies the server and the stores into the state, after a move.
func (m *machine) save(s *state) {
	for _, table := range []string{testTable, effectsTable} {
		s.items[table] = m.item(table)
	}
	for i, store := range m.stores {
		s.owners[i].clock = m.clockOf(store)
	}
	s.network = append(s.network, m.sent...)
}

// RoundTrip is the network of every host.
func (m *machine) RoundTrip(r *http.Request) (*http.Response, error) {
	p, err := readPacket(r)
	if err != nil {
		return nil, err
	}
	edited := m.broken.edit(p)
	s := sent{packet: edited, who: m.who}
	s.body = withoutRandom(s.body)
	if m.transit == heldBack {
		m.sent = append(m.sent, s)
		m.cancel() // its process gives up
		return nil, errHeldBack
	}
	resp, err := m.srv.RoundTrip(edited.request(r.Context()))
	if err != nil {
		return nil, err
	}
	s.delivered, s.granted = true, resp.StatusCode == http.StatusOK
	if p.op != "DeleteItem" && p.op != "GetItem" {
		m.sent = append(m.sent, s)
	}
	if m.transit == answerLost {
		m.cancel()
		return nil, errHeldBack
	}
	return resp, nil
}

// act runs a call of an owner over the network.
func (m *machine) act(mv move, f func(context.Context, *Store) error) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	m.who, m.transit, m.cancel = mv.who, mv.transit, cancel
	return f(ctx, m.stores[min(mv.who, players-1)]) // operators share the last one's
}

func (m *machine) claim(who int) dedup.Claim {
	return dedup.Claim{Key: testKey, Owner: string(rune('A' + who)), Lease: searchLease, Retention: searchRetention, ReceiveCount: 2}
}

// mistaken ends the search where DynamoDB does not accept a condition: a broken one must still be valid.
func (m *machine) mistaken(err error) {
	if api, ok := errors.AsType[smithy.APIError](err); ok && api.ErrorCode() == "ValidationException" {
		m.Fatal(err)
	}
}

// effect is the write of a handler that must happen once.
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

// checkEnd checks the key when every holder has crashed and every lease is over: it is completed, which an owner must have
// tried, or it can be acquired. States in which time can still pass are not checked: their later states are.
func (m *machine) checkEnd(at *state) error {
	if at.steps > 0 {
		return nil
	}
	m.restore(at)
	m.now = m.now.Add(4 * searchStep)
	m.who, m.transit = players-1, arrives
	c := m.claim(players - 1)
	c.Owner = "the next delivery"
	_, err := granted.Lease(m.probe.Acquire(context.Background(), c))
	m.mistaken(err)
	switch {
	case err == nil && at.facts.confirmed:
		return errors.New("a completed record was reopened")
	case isCompleted(err) && !at.facts.attempted:
		return errors.New("a delivery got the answer that the event was completed, and nobody tried")
	case err != nil && !isCompleted(err):
		return fmt.Errorf("the key cannot be acquired: %w", err)
	}
	return nil
}

// sweep lets the retention end, and TTL delete.
func (m *machine) sweep() int {
	m.now = m.now.Add(searchRetention + 2*time.Hour)
	return m.srv.SweepTTL()
}
