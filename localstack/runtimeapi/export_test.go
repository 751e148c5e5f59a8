package runtimeapi

// OptionError is optionError.
type OptionError = optionError
