// Command release checks that the repository can be released as a version, and prepares its modules for it.
package main

func main() {}
