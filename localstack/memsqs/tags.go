package memsqs

import (
	"maps"
	"time"
)

type tagInput struct {
	QueueURL string `json:"QueueUrl"`
	Tags     map[string]string
	TagKeys  []string
}

type tagsOutput struct {
	Tags map[string]string `json:",omitempty"`
}

const maxTags = 50

func (s *Server) tagQueue(_ *call, in *tagInput) (*empty, error) {
	return &empty{}, s.update(func(now time.Time) error {
		q, err := s.queue(in.QueueURL, now)
		if err != nil {
			return err
		}
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
	return &empty{}, s.update(func(now time.Time) error {
		q, err := s.queue(in.QueueURL, now)
		if err != nil {
			return err
		}
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
	return out, s.update(func(now time.Time) error {
		q, err := s.queue(in.QueueURL, now)
		if err == nil {
			out.Tags = maps.Clone(q.tags)
		}
		return err
	})
}
