package runtimeapi_test

import (
	"context"
	"fmt"
	"time"

	"github.com/sqsonce/sqsonce/localstack/runtimeapi"
)

// bootstrap is built with CGO_ENABLED=0 go build -tags lambda.norpc -o bootstrap.
func Example() {
	ctx := context.Background()
	f, err := runtimeapi.Start(ctx, bootstrap, func(o *runtimeapi.Options) {
		o.Env = []string{"TABLE=dedup"}
		o.Timeout = 10 * time.Second
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = f.Invoke(ctx, []byte(`{"Do":"error","Value":"out of stock"}`))
	fmt.Println(err)
	if err := f.Close(ctx); err != nil {
		fmt.Println(err)
	}
	// Output: runtimeapi: errorString: out of stock
}
