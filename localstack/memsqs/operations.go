package memsqs

import "github.com/sqsonce/sqsonce/localstack/internal/awsjson"

// operations is what the server can do, by name.
func (s *Server) operations() map[string]awsjson.Operation {
	return map[string]awsjson.Operation{
		"CreateQueue":                  operation(s.createQueue),
		"DeleteQueue":                  operation(s.deleteQueue),
		"GetQueueUrl":                  operation(s.getQueueURL),
		"ListQueues":                   operation(s.listQueues),
		"GetQueueAttributes":           operation(s.getQueueAttributes),
		"SetQueueAttributes":           operation(s.setQueueAttributes),
		"PurgeQueue":                   operation(s.purgeQueue),
		"ListDeadLetterSourceQueues":   operation(s.listSources),
		"StartMessageMoveTask":         operation(s.startMove),
		"ListMessageMoveTasks":         operation(s.listMoves),
		"CancelMessageMoveTask":        operation(s.cancelMove),
		"TagQueue":                     operation(s.tagQueue),
		"UntagQueue":                   operation(s.untagQueue),
		"ListQueueTags":                operation(s.listQueueTags),
		"SendMessage":                  operation(s.sendMessage),
		"SendMessageBatch":             operation(s.sendMessageBatch),
		"ReceiveMessage":               operation(s.receiveMessage),
		"DeleteMessage":                operation(s.deleteMessage),
		"DeleteMessageBatch":           operation(s.deleteMessageBatch),
		"ChangeMessageVisibility":      operation(s.changeVisibility),
		"ChangeMessageVisibilityBatch": operation(s.changeVisibilityBatch),
	}
}
