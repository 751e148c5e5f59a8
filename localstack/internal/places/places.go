// Package places keeps an SQS and a DynamoDB for each account and Region, as AWS does: a queue or a table of another one does not exist.
package places

import (
	"cmp"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/sqsonce/sqsonce/localstack/internal/awsjson"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

// Place is a Region of an account.
type Place struct{ Region, Account string }

func (p Place) String() string { return p.Region + ", account " + p.Account }

// ARN is the ARN of a resource of a service, such as "table/orders" of dynamodb.
func (p Place) ARN(service, resource string) string {
	return "arn:aws:" + service + ":" + p.Region + ":" + p.Account + ":" + resource
}

// QueueURL is the URL of a queue behind an endpoint.
func (p Place) QueueURL(endpoint, name string) string { return endpoint + "/" + p.Account + "/" + name }

// Services are the services of a place.
type Services struct {
	Place
	SQS      *memsqs.Server
	DynamoDB *memdynamodb.Server
}

// Close closes both services.
func (s *Services) Close() {
	s.SQS.Close()
	s.DynamoDB.Close()
}

// service returns the one that a request calls. SQS also returns the error for a call of neither.
func (s *Services) service(r *http.Request) interface {
	http.Handler
	http.RoundTripper
} {
	if s.DynamoDB.Serves(r) {
		return s.DynamoDB
	}
	return s.SQS
}

// Map has the services of all places in which something was created. It is an http.Handler and an http.RoundTripper. All methods are
// safe for concurrent use.
type Map struct {
	home  Place
	start func(Place) *Services

	mu  sync.Mutex
	all map[Place]*Services
}

// New returns a Map with the services of home, where requests go that name no Region and no account. start returns services
// without queues and tables.
func New(home Place, start func(Place) *Services) *Map {
	return &Map{home: home, start: start, all: map[Place]*Services{home: start(home)}}
}

// At returns the services of a place, nil if nothing was created there.
func (m *Map) At(p Place) *Services {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all[p]
}

// Make returns the services of a place, which it makes if there are none.
func (m *Map) Make(p Place) *Services {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all[p] == nil {
		m.all[p] = m.start(p)
	}
	return m.all[p]
}

// All returns the services of all places, those of home first.
func (m *Map) All() []*Services {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.SortedFunc(maps.Values(m.all), func(a, b *Services) int {
		switch m.home {
		case a.Place:
			return -1
		case b.Place:
			return 1
		}
		return cmp.Or(cmp.Compare(a.Account, b.Account), cmp.Compare(a.Region, b.Region))
	})
}

// Close closes all services.
func (m *Map) Close() {
	for _, s := range m.All() {
		s.Close()
	}
}

var accountID = regexp.MustCompile(`^[0-9]{12}$`)

// place returns the place of a request: the Region of its signature, and the account of its access key. An access key of 12 digits is
// the account's ID, as in LocalStack.
// https://docs.localstack.cloud/aws/capabilities/config/multi-account-setups/
func (m *Map) place(r *http.Request) Place {
	scope, p := awsjson.ScopeOf(r), m.home
	p.Region = cmp.Or(scope.Region, p.Region)
	if accountID.MatchString(scope.AccessKey) {
		p.Account = scope.AccessKey
	}
	return p
}

// of returns the services that answer a request. done is called after the answer. Only a call that creates something makes a place:
// one that names any Region costs no memory.
func (m *Map) of(r *http.Request) (s *Services, done func()) {
	p := m.place(r)
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.all[p]; s != nil {
		return s, func() {}
	}
	s = m.start(p)
	if _, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), "."); op != "CreateQueue" && op != "CreateTable" || !awsjson.ScopeOf(r).Valid() {
		return s, s.Close
	}
	m.all[p] = s
	return s, func() {}
}

func (m *Map) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s, done := m.of(r)
	defer done()
	s.service(r).ServeHTTP(w, r)
}

// RoundTrip is for tests in a bubble.
func (m *Map) RoundTrip(r *http.Request) (*http.Response, error) {
	s, done := m.of(r)
	defer done()
	return s.service(r).RoundTrip(r)
}
