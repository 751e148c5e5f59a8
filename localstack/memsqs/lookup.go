package memsqs

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
)

type queueInput struct {
	QueueURL string `json:"QueueUrl"`
}

type queueOutput struct {
	QueueURL string `json:"QueueUrl"`
}

// queue returns the queue of a URL, with everything done that time does.
func (s *Server) queue(queueURL string, now time.Time) (*queue, error) {
	if queueURL == "" {
		return nil, missingParameter("QueueUrl")
	}
	u, err := url.Parse(queueURL)
	if err != nil || u.Host == "" {
		return nil, newError("InvalidAddress", "The address "+queueURL+" is not valid for this endpoint.")
	}
	account, name, _ := strings.Cut(strings.Trim(u.Path, "/"), "/")
	q := s.queues[name]
	if q == nil || account != s.opts.Account {
		return nil, queueDoesNotExist()
	}
	q.advance(now)
	return q, nil
}

type getURLInput struct {
	QueueName              string
	QueueOwnerAWSAccountID string `json:"QueueOwnerAWSAccountId"`
}

func (s *Server) getQueueURL(_ *call, in *getURLInput) (*queueOutput, error) {
	out := &queueOutput{}
	return out, s.update(func(time.Time) error {
		q := s.queues[in.QueueName]
		if in.QueueName == "" {
			return missingParameter("QueueName")
		}
		if q == nil || in.QueueOwnerAWSAccountID != "" && in.QueueOwnerAWSAccountID != s.opts.Account {
			return queueDoesNotExist()
		}
		out.QueueURL = q.url()
		return nil
	})
}

type listInput struct {
	QueueNamePrefix string
	MaxResults      *int
	NextToken       string
}

type listOutput struct {
	QueueURLs []string `json:"QueueUrls,omitempty"`
	NextToken string   `json:",omitempty"`
}

// listQueues returns up to 1,000 URLs by name. With MaxResults there is a next page, and its token is the last name.
func (s *Server) listQueues(_ *call, in *listInput) (*listOutput, error) {
	most, err := within(in.MaxResults, 1000, 1, 1000, "MaxResults")
	if err != nil {
		return nil, err
	}
	out := &listOutput{}
	return out, s.update(func(time.Time) error {
		last := ""
		for _, name := range slices.Sorted(maps.Keys(s.queues)) {
			if !strings.HasPrefix(name, in.QueueNamePrefix) || name <= in.NextToken {
				continue
			}
			if len(out.QueueURLs) == most {
				if in.MaxResults != nil {
					out.NextToken = last
				}
				break
			}
			out.QueueURLs = append(out.QueueURLs, s.queues[name].url())
			last = name
		}
		return nil
	})
}
