package watermill

import (
	"encoding/json"

	"github.com/ThreeDotsLabs/watermill"
	wmsqs "github.com/ThreeDotsLabs/watermill-aws/sqs"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/sqsonce/sqsonce"
)

// SendWithID is the producer that gives each message the ID of its event.
func SendWithID(p *wmsqs.Publisher, queue string, o Order) error {
	body, err := json.Marshal(o)
	if err != nil {
		return err
	}
	m := message.NewMessage(watermill.NewUUID(), body)
	m.Metadata.Set(sqsonce.AttrEventSource, "orders")
	m.Metadata.Set(sqsonce.AttrEventID, o.ID)
	return p.Publish(queue, m)
}
