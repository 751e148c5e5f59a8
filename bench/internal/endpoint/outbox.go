package endpoint

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce/bench/internal/job"
	"github.com/sqsonce/sqsonce/fifo/outbox/dynamooutbox"
)

// fillOutbox commits the events, up to a hundred in a transaction. Its requests are not counted, its write units are.
func (s *server) fillOutbox(ctx context.Context, ddb *dynamodb.Client) error {
	if err := dynamooutbox.CreateTable(ctx, ddb, job.OutboxTable); err != nil {
		return err
	}
	box, err := dynamooutbox.New(ddb, job.OutboxTable, job.OutboxName, job.OutboxSource)
	if err != nil {
		return err
	}
	const most = 100
	var writes []ddbtypes.TransactWriteItem
	commit := func() error {
		if len(writes) == 0 {
			return nil
		}
		_, err := ddb.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: writes})
		writes = nil
		return err
	}
	seqs := make([]int64, s.cfg.OutboxGroups)
	for _, e := range job.Backlog(s.cfg.Events, s.cfg.OutboxGroups) {
		seqs[e.Group]++
		put, err := box.Put(job.OutboxEvent(e), seqs[e.Group])
		if err != nil {
			return err
		}
		if writes = append(writes, ddbtypes.TransactWriteItem{Put: put}); len(writes) == most {
			if err := commit(); err != nil {
				return err
			}
		}
	}
	return commit()
}
