// Package emulator finds, installs and starts emulators of AWS that others wrote, without Docker. The in-memory services
// are compared with them: an emulator shares no line with us, so it does not share our misreadings either.
//
// An emulator is installed once, at an exact version, below the user's cache folder, and started at most once in a test
// process, on free ports of the loopback interface. Tests take it from [Emulator.Start]; the environment variable
// EMULATORS says what happens where it is missing:
//
//	EMULATORS=          the test is skipped and says which emulator is missing and how to get it
//	EMULATORS=off       the test is skipped, also where the emulator is installed
//	EMULATORS=install   it is installed; the test is skipped if that does not work
//	EMULATORS=required  it is installed; the test fails if that does not work
package emulator
