package ops

// Lock locks a dead-letter queue, as a redrive with a journal in the folder does.
func Lock(queueARN, folder string) (unlock func(), err error) {
	return (&DLQ{arn: queueARN}).lockIn("Redrive", folder)
}
