// Package cold holds functions whose binary and start are measured. Each is a program of its own, because the bench's has all
// contestants in it.
package cold

import (
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// Client returns a client that sends nothing before the first invocation.
func Client() *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("bench", "bench", "")})
}
