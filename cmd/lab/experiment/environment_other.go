//go:build !linux

package experiment

// addPlatform adds nothing.
func (e *Environment) addPlatform() {}

// loadText is empty: this platform is not asked.
func loadText() string { return "" }
