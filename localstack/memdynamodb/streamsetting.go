package memdynamodb

import (
	"slices"
	"time"
)

// streamInput is the StreamSpecification of a request.
type streamInput struct {
	StreamEnabled  *bool
	StreamViewType string
}

// streamSpecification describes a stream that is enabled.
type streamSpecification struct {
	StreamEnabled  bool
	StreamViewType string
}

var viewTypes = []string{"NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES", "KEYS_ONLY"}

func (in *streamInput) valid() error {
	switch {
	case in == nil:
		return nil
	case in.StreamEnabled == nil:
		return required("streamSpecification.streamEnabled")
	case in.StreamViewType != "" && !slices.Contains(viewTypes, in.StreamViewType):
		return constraint(in.StreamViewType, "streamSpecification.streamViewType", "Member must satisfy enum value set: [NEW_IMAGE, OLD_IMAGE, NEW_AND_OLD_IMAGES, KEYS_ONLY]")
	case *in.StreamEnabled && in.StreamViewType == "":
		return validation(invalidParameters + "Table is being created with a stream enabled, UpdateViewType must be specified")
	case !*in.StreamEnabled && in.StreamViewType != "":
		return validation(invalidParameters + "Table is being created with a stream disabled, UpdateViewType should not be specified")
	}
	return nil
}

// checkStream refuses a change of a table that changes nothing, and one of the view type: AWS has neither.
func (t *table) checkStream(in *streamInput) error {
	switch enabled := t.stream != nil; {
	case *in.StreamEnabled && enabled:
		return validation("Table already has an enabled stream: TableName: %s", t.TableName)
	case !*in.StreamEnabled && !enabled:
		return validation("Table has no stream to disable: TableName: %s", t.TableName)
	}
	return nil
}

// setStream gives the table what a valid specification says: a new stream, or none.
func (s *Server) setStream(t *table, in *streamInput) {
	switch {
	case in == nil:
	case !*in.StreamEnabled:
		s.disableStream(t)
	default:
		s.enableStream(t, in.StreamViewType)
	}
}

// enableStream gives the table a new stream. Its label is its time of creation, in milliseconds.
func (s *Server) enableStream(t *table, view string) {
	s.trimStreams()
	const layout = "2006-01-02T15:04:05.000"
	label := s.at.UTC()
	arn := func() string { return t.TableArn + "/stream/" + label.Format(layout) }
	for slices.ContainsFunc(s.streams, func(o *stream) bool { return o.arn == arn() }) {
		label = label.Add(time.Millisecond)
	}
	t.stream = &stream{srv: s, arn: arn(), label: label.Format(layout), view: view, table: t.TableName, keys: t.KeySchema, created: s.at}
	t.stream.open("", 0, 1<<64-1)
	s.streams = append(s.streams, t.stream)
	t.StreamSpecification = &streamSpecification{true, view}
	t.LatestStreamArn, t.LatestStreamLabel = t.stream.arn, t.stream.label
}

// disableStream closes the table's stream, if it has one. Its records stay for 24 hours.
func (s *Server) disableStream(t *table) {
	if t.stream == nil {
		return
	}
	t.stream.disabled = s.at
	for _, sh := range t.stream.shards {
		t.stream.close(sh)
	}
	t.stream, t.StreamSpecification = nil, nil
	s.trimStreams()
}
