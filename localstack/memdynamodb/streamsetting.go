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
func (t *tableState) checkStream(in *streamInput) error {
	switch enabled := t.stream != nil; {
	case *in.StreamEnabled && enabled:
		return validation("Table already has an enabled stream: TableName: %s", t.TableName)
	case !*in.StreamEnabled && !enabled:
		return validation("Table has no stream to disable: TableName: %s", t.TableName)
	}
	return nil
}

// setStream gives the table what a valid specification says: a new stream, or none. The caller holds the server's mu.
func (t *table) setStream(in *streamInput) {
	switch {
	case in == nil:
	case !*in.StreamEnabled:
		t.disableStream()
	default:
		t.enableStream(in.StreamViewType)
	}
}

// enableStream gives the table a new stream. Its label is its time of creation, in milliseconds.
func (t *table) enableStream(view string) {
	const layout = "2006-01-02T15:04:05.000"
	label := t.at.UTC()
	arn := func() string { return t.TableArn + "/stream/" + label.Format(layout) }
	for slices.ContainsFunc(t.srv.streams, func(o *stream) bool { return o.arn == arn() }) {
		label = label.Add(time.Millisecond)
	}
	t.stream = &stream{of: t, arn: arn(), label: label.Format(layout), view: view, table: t.TableName, keys: t.KeySchema, created: t.at}
	t.stream.open("", 0, 1<<64-1)
	t.srv.streams = append(t.srv.streams, t.stream)
	t.StreamSpecification = &streamSpecification{true, view}
	t.LatestStreamArn, t.LatestStreamLabel = t.stream.arn, t.stream.label
}

// disableStream closes the table's stream, if it has one. Its records stay for 24 hours.
func (t *table) disableStream() {
	if t.stream == nil {
		return
	}
	t.stream.disabled = t.at
	for _, sh := range t.stream.shards {
		t.stream.close(sh)
	}
	t.stream, t.StreamSpecification = nil, nil
	t.srv.trimStreams(t.at)
}
