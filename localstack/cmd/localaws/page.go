package main

import (
	"cmp"
	"context"
	_ "embed"
	"html/template"
	"net/http"
	"net/url"
	"path"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/localstack/internal/places"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

type queueRow struct{ Name, Visible, InFlight, Delayed, Redrive string }

type tableRow struct {
	Name  string
	Items int64
}

type callRow struct {
	Operation string
	N         int
}

// contents is the queues and tables of a place.
type contents struct {
	places.Place
	Query  template.URL // the parameters of links to the place
	Queues []queueRow
	Tables []tableRow
}

func (w *world) contents(ctx context.Context, s *places.Services) (contents, error) {
	c := contents{Place: s.Place}
	if s.Place != w.o.home() {
		c.Query = template.URL("?" + url.Values{"region": {s.Region}, "account": {s.Account}}.Encode())
	}
	q := sqs.New(sqs.Options{
		Region: s.Region, Credentials: aws.CredentialsProviderFunc(local), HTTPClient: &http.Client{Transport: s.SQS}, BaseEndpoint: &w.url,
	})
	var urls []string
	for pages := sqs.NewListQueuesPaginator(q, &sqs.ListQueuesInput{MaxResults: aws.Int32(1000)}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return c, err
		}
		urls = append(urls, page.QueueUrls...)
	}
	for _, url := range urls {
		name := path.Base(url)
		out, err := q.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &name, AttributeNames: []types.QueueAttributeName{"All"}})
		if err != nil {
			continue // it was deleted
		}
		a := out.Attributes
		c.Queues = append(c.Queues, queueRow{
			name, a["ApproximateNumberOfMessages"], a["ApproximateNumberOfMessagesNotVisible"],
			a["ApproximateNumberOfMessagesDelayed"], a["RedrivePolicy"],
		})
	}
	d := dynamoClient(s)
	for pages := dynamodb.NewListTablesPaginator(d, &dynamodb.ListTablesInput{}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return c, err
		}
		for _, name := range page.TableNames {
			if out, err := d.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &name}); err == nil { // else it was deleted
				c.Tables = append(c.Tables, tableRow{name, *out.Table.ItemCount})
			}
		}
	}
	return c, nil
}

// page shows the queues, the tables and the calls of the last minute.
func (w *world) page(rw http.ResponseWriter, r *http.Request) {
	var p struct {
		URL    string
		Now    string
		Places []contents
		Calls  []callRow
	}
	now := time.Now()
	p.URL, p.Now = w.url, now.UTC().Format(time.TimeOnly)
	for _, s := range w.places.Load().All() {
		c, err := w.contents(r.Context(), s)
		if err != nil {
			http.Error(rw, err.Error(), http.StatusInternalServerError)
			return
		}
		if s.Place == w.o.home() || len(c.Queues)+len(c.Tables) > 0 {
			p.Places = append(p.Places, c)
		}
	}
	for operation, n := range w.calls.lastMinute(now) {
		p.Calls = append(p.Calls, callRow{operation, n})
	}
	slices.SortFunc(p.Calls, func(a, b callRow) int { return cmp.Or(b.N-a.N, cmp.Compare(a.Operation, b.Operation)) })
	rw.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = pageTemplate.Execute(rw, p) // the client disconnected
}
