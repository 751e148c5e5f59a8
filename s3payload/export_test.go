package s3payload

// The reasons why a pointer is not resolved.
var (
	ErrBucket   = errBucket
	ErrTooLarge = errTooLarge
	ErrSize     = errSize
	ErrSlow     = errTooSlow
	ErrPointer  = errPointer
)
