// Package version says which build this is.
package version

import (
	"runtime/debug"
	"sync"
)

// Version and Commit are set by the linker (-X); a plain `go build` or
// `go install` falls back to what the toolchain recorded.
//
//nolint:gochecknoglobals // the linker's interface
var (
	Version = ""
	Commit  = ""
)

// Get returns the version and the commit, "dev" and "unknown" where nothing is
// known.
//
//nolint:gochecknoglobals // computed once
var Get = sync.OnceValues(func() (version, commit string) {
	version, commit = Version, Commit
	info, ok := debug.ReadBuildInfo()
	if ok && version == "" && info.Main.Version != "(devel)" {
		version = info.Main.Version
	}
	if ok && commit == "" {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				commit = s.Value
			}
		}
	}
	if version == "" {
		version = "dev"
	}
	if commit == "" {
		commit = "unknown"
	}
	return version, commit
})
