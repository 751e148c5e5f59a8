package esm

// ConfigError is configError.
type ConfigError = configError
