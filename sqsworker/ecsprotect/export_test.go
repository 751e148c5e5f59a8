package ecsprotect

import "net/http"

// SetAgent sets the address of ECS's agent, and the client that calls it.
func (o *Options) SetAgent(uri string, c *http.Client) { o.uri, o.client = uri, c }
