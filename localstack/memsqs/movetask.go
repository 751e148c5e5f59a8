package memsqs

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"time"
)

// moveTask moves messages from a dead-letter queue to the queues that they came from, or to another queue. Server.mu
// guards it.
type moveTask struct {
	server      *Server
	handle      string
	source      *queue
	destination string // ARN; "": the queue that each message came from
	perSecond   *int   // as asked; nil: as fast as SQS can
	status      string
	failure     string
	total       int
	moved       int
	shown       int // moved, as it was some time ago: see moveFigureDelay
	started     time.Time
}

const (
	moveRunning    = "RUNNING"
	moveCompleted  = "COMPLETED"
	moveFailed     = "FAILED"
	moveCancelling = "CANCELLING"
	moveCancelled  = "CANCELLED"
)

// moveFigureDelay is how late the figure of moved messages is, also after the end. AWS was recorded to show 0 when two messages had
// arrived at one a second, and the right figure some seconds after the end: test_move_task_cancel of LocalStack, and its pull request
// 9988. How late it is at most is not known.
const moveFigureDelay = 1500 * time.Millisecond

// step moves the messages of one second and runs again after a second.
func (t *moveTask) step(now time.Time) {
	if t.status == moveCancelling {
		t.status = moveCancelled
	}
	if t.status != moveRunning {
		return
	}
	t.move(now)
	t.after(time.Second, t.step)
	moved := t.moved
	t.after(moveFigureDelay, func(time.Time) { t.shown = moved })
}

// after changes the task some time from now. A failure is in the task.
func (t *moveTask) after(d time.Duration, change func(now time.Time)) {
	time.AfterFunc(d, func() {
		_ = t.server.update(func(now time.Time) error { change(now); return nil })
	})
}

// move moves the messages of one second. A moved message is new in its queue: it has a new message ID and SentTimestamp and a receive
// count of 0, and is the last of its group.
func (t *moveTask) move(now time.Time) {
	t.source.advance(now)
	rate := maxMovesPerSecond
	if t.perSecond != nil {
		rate = *t.perSecond
	}
	for range rate {
		next := t.source.order.next(1, now)
		if len(next) == 0 {
			t.status = moveCompleted
			return
		}
		m := next[0]
		arn := t.destination
		if arn == "" {
			arn = m.sourceARN
		}
		to := t.server.byARN(arn)
		if to == nil || t.source.deleted {
			t.status, t.failure = moveFailed, "CouldNotDetermineMessageSource"
			if arn != "" {
				t.failure = namespace + "NonExistentQueue"
			}
			return
		}
		t.source.remove(m, now)
		moved := &message{
			id: t.server.newID(), body: m.body, md5: m.md5, attrs: m.attrs, trace: m.trace, group: m.group, dedupID: m.dedupID,
			sentAt: now, enqueuedAt: now, visibleAt: now,
		}
		if to.attrs.FIFO {
			moved.seq = t.server.nextSequence()
		}
		to.insert(moved, nil, now) // without deduplication: a move loses no message
		t.moved++
	}
}

type startMoveInput struct {
	SourceARN      string `json:"SourceArn"`
	DestinationARN string `json:"DestinationArn"`
	PerSecond      *int   `json:"MaxNumberOfMessagesPerSecond"`
}

type taskHandle struct {
	TaskHandle string
}

func (s *Server) startMove(_ *call, in *startMoveInput) (*taskHandle, error) {
	_, err := intParameter(in.PerSecond, maxMovesPerSecond, 1, maxMovesPerSecond, "MaxNumberOfMessagesPerSecond")
	if err != nil {
		return nil, err
	}
	out := &taskHandle{}
	return out, s.update(func(now time.Time) error {
		source, err := s.queueOfARN(in.SourceARN, "SourceArn")
		if err != nil {
			return err
		}
		if in.DestinationARN != "" {
			to, err := s.queueOfARN(in.DestinationARN, "DestinationArn")
			if err != nil {
				return err
			}
			if to == source || to.attrs.FIFO != source.attrs.FIFO {
				return invalidValue(in.DestinationARN, "DestinationArn", "The destination must be another queue of the same type.")
			}
		}
		if len(s.sourcesOf(source)) == 0 {
			return invalidParameter("Source queue must be configured as a Dead Letter Queue.")
		}
		if slices.ContainsFunc(s.moves, func(t *moveTask) bool {
			return t.source == source && (t.status == moveRunning || t.status == moveCancelling)
		}) {
			return invalidParameter("There is already a task running. Only one active task is allowed for a source queue arn at a given time.")
		}
		t := &moveTask{
			server: s, source: source, destination: in.DestinationARN, perSecond: in.PerSecond, status: moveRunning, started: now,
			total:  len(source.messages) - source.inFlight - source.delayed,
			handle: newMoveHandle(s.newID(), source.arn),
		}
		s.moves = append(s.moves, t)
		out.TaskHandle = t.handle
		t.step(now)
		return nil
	})
}

type moveResult struct {
	TaskHandle       string `json:",omitempty"` // only while the task is running
	Status           string
	SourceARN        string `json:"SourceArn"`
	DestinationARN   string `json:"DestinationArn,omitempty"`
	PerSecond        *int   `json:"MaxNumberOfMessagesPerSecond,omitempty"`
	Moved            int    `json:"ApproximateNumberOfMessagesMoved"`
	Total            int    `json:"ApproximateNumberOfMessagesToMove"`
	FailureReason    string `json:",omitempty"`
	StartedTimestamp int64
}

type listMovesInput struct {
	SourceARN  string `json:"SourceArn"`
	MaxResults *int
}

type listMovesOutput struct {
	Results []moveResult `json:",omitempty"`
}

// listMoves returns the tasks of a queue, newest first.
func (s *Server) listMoves(_ *call, in *listMovesInput) (*listMovesOutput, error) {
	limit, err := intParameter(in.MaxResults, 1, 1, 10, "MaxResults")
	if err != nil {
		return nil, err
	}
	out := &listMovesOutput{}
	return out, s.update(func(time.Time) error {
		source, err := s.queueOfARN(in.SourceARN, "SourceArn")
		if err != nil {
			return err
		}
		for _, t := range slices.Backward(s.moves) {
			if t.source == source && len(out.Results) < limit {
				out.Results = append(out.Results, t.result())
			}
		}
		return nil
	})
}

func (t *moveTask) result() moveResult {
	r := moveResult{
		Status: t.status, SourceARN: t.source.arn, DestinationARN: t.destination, PerSecond: t.perSecond,
		Moved: t.shown, Total: t.total, FailureReason: t.failure, StartedTimestamp: t.started.UnixMilli(),
	}
	if t.status == moveRunning {
		r.TaskHandle = t.handle
	}
	return r
}

// moveHandle is the content of a task handle, in base64.
type moveHandle struct {
	TaskID    string `json:"taskId"`
	SourceARN string `json:"sourceArn"`
}

func newMoveHandle(id, sourceARN string) string {
	raw, _ := json.Marshal(moveHandle{id, sourceARN}) // two strings have JSON
	return base64.StdEncoding.EncodeToString(raw)
}

func sourceOfMove(handle string) (arn string, err error) {
	var h moveHandle
	raw, err := base64.StdEncoding.DecodeString(handle)
	if err == nil {
		err = json.Unmarshal(raw, &h)
	}
	if err != nil || h.TaskID == "" || h.SourceARN == "" {
		return "", invalidParameter("Value for parameter TaskHandle is invalid.")
	}
	return h.SourceARN, nil
}

type cancelMoveOutput struct {
	Moved int `json:"ApproximateNumberOfMessagesMoved"`
}

func (s *Server) cancelMove(_ *call, in *taskHandle) (*cancelMoveOutput, error) {
	out := &cancelMoveOutput{}
	return out, s.update(func(time.Time) error {
		sourceARN, err := sourceOfMove(in.TaskHandle)
		if err != nil {
			return err
		}
		if _, err := s.queueOfARN(sourceARN, "SourceArn"); err != nil {
			return err
		}
		i := slices.IndexFunc(s.moves, func(t *moveTask) bool { return t.handle == in.TaskHandle })
		if i < 0 {
			return newError("ResourceNotFoundException", "Task does not exist.")
		}
		t := s.moves[i]
		if t.status != moveRunning {
			return newError("UnsupportedOperation", "Only active tasks can be cancelled.")
		}
		t.status = moveCancelling
		out.Moved = t.shown
		return nil
	})
}

// queueOfARN returns the queue of an ARN that is a required parameter.
func (s *Server) queueOfARN(arn, parameter string) (*queue, error) {
	if arn == "" {
		return nil, missingParameter(parameter)
	}
	q := s.byARN(arn)
	if q == nil {
		return nil, newError("ResourceNotFoundException", "The resource that you specified for the "+parameter+" parameter doesn't exist.")
	}
	return q, nil
}
