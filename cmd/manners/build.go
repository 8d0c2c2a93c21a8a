package manners

import "runtime/debug"

// ProgramVersion is what the build says of itself: a tag, or the commit and whether it was changed.
func ProgramVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "unknown"
	}
	return info.Main.Version
}
