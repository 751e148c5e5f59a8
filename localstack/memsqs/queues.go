package memsqs

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
)

type createInput struct {
	QueueName  string
	Attributes map[string]string
	Tags       map[string]string `json:"tags"`
}

func (s *Server) createQueue(c *call, in *createInput) (*queueOutput, error) {
	out := &queueOutput{}
	return out, s.update(func(now time.Time) error {
		q, err := s.create(in, now)
		if err == nil {
			out.QueueURL = q.url(c)
		}
		return err
	})
}

func (s *Server) create(in *createInput, now time.Time) (*queue, error) {
	if in.QueueName == "" {
		return nil, missingParameter("QueueName")
	}
	base, suffixed := strings.CutSuffix(in.QueueName, ".fifo")
	fifo := plain("FifoQueue", in.Attributes["FifoQueue"]) == "true"
	switch {
	case fifo && (!suffixed || !isName(base) || len(in.QueueName) > 80):
		return nil, invalidParameter("The name of a FIFO queue can only include alphanumeric characters, hyphens, or underscores, must end with .fifo suffix and be 1 to 80 in length.")
	case !fifo && !isName(in.QueueName):
		return nil, invalidParameter("Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length.")
	}
	if q := s.queues[in.QueueName]; q != nil {
		for name, v := range in.Attributes {
			if q.attrs.set[name] != plain(name, v) {
				return nil, newError("QueueNameExists", "A queue already exists with the same name and a different value for attribute "+name)
			}
		}
		return q, nil
	}
	if at, ok := s.deleted[in.QueueName]; ok && !s.opts.NoPurgeDelay && now.Before(at.Add(deleteInterval)) {
		return nil, newError("QueueDeletedRecently", "You must wait 60 seconds after deleting a queue before you can create another with the same name.")
	}
	attrs, err := attributes{set: defaults(fifo)}.with(in.Attributes, fifo)
	if err != nil {
		return nil, err
	}
	if err := s.checkRedrive(attrs); err != nil {
		return nil, err
	}
	delete(s.deleted, in.QueueName)
	q := newQueue(s, in.QueueName, attrs, now)
	q.tags = in.Tags
	s.queues[in.QueueName] = q
	return q, nil
}

func (s *Server) deleteQueue(_ *call, in *queueInput) (*empty, error) {
	return &empty{}, s.withQueue(in.QueueURL, func(q *queue, now time.Time) error {
		delete(s.queues, q.name)
		s.deleted[q.name] = now
		q.deleted = true
		q.markChanged() // to end its polls
		return nil
	})
}

type queueInput struct {
	QueueURL string `json:"QueueUrl"`
}

type queueOutput struct {
	QueueURL string `json:"QueueUrl"`
}

// queue returns the queue of a URL, whose host does not matter, or of a name.
func (s *Server) queue(queueURL string) (*queue, error) {
	if queueURL == "" {
		return nil, missingParameter("QueueUrl")
	}
	if !strings.ContainsAny(queueURL, "/:") {
		queueURL = "https://sqs/" + s.opts.Account + "/" + queueURL
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
	return q, nil
}

type getURLInput struct {
	QueueName              string
	QueueOwnerAWSAccountID string `json:"QueueOwnerAWSAccountId"`
}

func (s *Server) getQueueURL(c *call, in *getURLInput) (*queueOutput, error) {
	out := &queueOutput{}
	return out, s.update(func(time.Time) error {
		q := s.queues[in.QueueName]
		if in.QueueName == "" {
			return missingParameter("QueueName")
		}
		if q == nil || in.QueueOwnerAWSAccountID != "" && in.QueueOwnerAWSAccountID != s.opts.Account {
			return queueDoesNotExist()
		}
		out.QueueURL = q.url(c)
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

// listQueues returns up to 1,000 URLs, sorted by queue name. Only with MaxResults is there a token for the next page: the
// last name of this one.
func (s *Server) listQueues(c *call, in *listInput) (*listOutput, error) {
	limit, err := intParameter(in.MaxResults, 1000, 1, 1000, "MaxResults")
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
			if len(out.QueueURLs) == limit {
				if in.MaxResults != nil {
					out.NextToken = last
				}
				break
			}
			out.QueueURLs = append(out.QueueURLs, s.queues[name].url(c))
			last = name
		}
		return nil
	})
}

func (s *Server) purgeQueue(_ *call, in *queueInput) (*empty, error) {
	return &empty{}, s.withQueue(in.QueueURL, func(q *queue, now time.Time) error {
		if !s.opts.NoPurgeDelay && !q.purgedAt.IsZero() && now.Before(q.purgedAt.Add(purgeInterval)) {
			return newError("PurgeQueueInProgress", "Only one PurgeQueue operation on "+q.name+" is allowed every 60 seconds.")
		}
		q.purgedAt = now
		q.purge(now)
		return nil
	})
}

// Purge deletes all messages of the queue with that name or URL at once, as often as you like. It returns false for a queue that does
// not exist.
func (s *Server) Purge(queue string) bool {
	return s.update(func(now time.Time) error {
		q := s.queues[queue[strings.LastIndexByte(queue, '/')+1:]]
		if q == nil {
			return queueDoesNotExist()
		}
		q.purge(now)
		return nil
	}) == nil
}

func (q *queue) purge(now time.Time) {
	for _, m := range q.messages {
		q.remove(m, now)
	}
	q.dedup.clear()
	q.attempts.clear()
}

type tagInput struct {
	QueueURL string `json:"QueueUrl"`
	Tags     map[string]string
	TagKeys  []string
}

type tagsOutput struct {
	Tags map[string]string `json:",omitempty"`
}

func (s *Server) tagQueue(_ *call, in *tagInput) (*empty, error) {
	return &empty{}, s.withQueue(in.QueueURL, func(q *queue, now time.Time) error {
		if len(in.Tags) == 0 {
			return missingParameter("Tags")
		}
		tags := map[string]string{}
		maps.Copy(tags, q.tags)
		maps.Copy(tags, in.Tags)
		if len(tags) > maxTags {
			return invalidParameter("Too many tags added for queue %s.", q.name)
		}
		q.tags = tags
		return nil
	})
}

func (s *Server) untagQueue(_ *call, in *tagInput) (*empty, error) {
	return &empty{}, s.withQueue(in.QueueURL, func(q *queue, now time.Time) error {
		if len(in.TagKeys) == 0 {
			return missingParameter("TagKeys")
		}
		for _, k := range in.TagKeys {
			delete(q.tags, k)
		}
		return nil
	})
}

func (s *Server) listQueueTags(_ *call, in *queueInput) (*tagsOutput, error) {
	out := &tagsOutput{}
	return out, s.withQueue(in.QueueURL, func(q *queue, _ time.Time) error {
		out.Tags = maps.Clone(q.tags)
		return nil
	})
}
