package ecsprotect

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce/internal/host"
)

// answer is the agent's. It answers 200 also where ECS refuses, with a failure:
// https://docs.aws.amazon.com/AmazonECS/latest/developerguide/task-scale-in-protection-endpoint.html
type answer struct {
	Protection *struct{ ProtectionEnabled bool } `json:"protection"`
	Failure    *struct{ Reason, Detail string }  `json:"failure"`
	Error      *struct{ Code, Message string }   `json:"error"`
}

// put switches the task's protection on or off. Only an answer that says so counts.
func (g *Guard) put(ctx context.Context, on bool) error {
	request := map[string]any{"ProtectionEnabled": on}
	if on {
		request["ExpiresInMinutes"] = int(g.o.Expiry / time.Minute)
	}
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, strings.TrimSuffix(g.o.uri, "/")+"/task-protection/v1/state", bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	return host.Contain(func() error { // the client may be the user's
		resp, err := g.o.client.Do(r)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
		if err != nil {
			return err
		}
		return read(resp.Status, text, on)
	})
}

func read(status string, text []byte, on bool) error {
	var a answer
	err := json.Unmarshal(text, &a)
	switch {
	case err != nil:
		return fmt.Errorf("the agent's answer (%s) is not its JSON: %w", status, err)
	case a.Failure != nil:
		return fmt.Errorf("ECS refused: %s %s", a.Failure.Reason, a.Failure.Detail)
	case a.Error != nil:
		return fmt.Errorf("the agent failed: %s: %s", a.Error.Code, a.Error.Message)
	case a.Protection == nil || a.Protection.ProtectionEnabled != on:
		return fmt.Errorf("the agent's answer (%s) does not say that the protection is %t", status, on)
	}
	return nil
}
