package main

import (
	"cmp"
	"runtime/debug"
)

// release is the version where the build names one, as the Dockerfile's does.
var release string

// version is the module's version, or the commit it was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "askback (unknown version)"
	}
	v := cmp.Or(release, info.Main.Version)
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && (v == "" || v == "(devel)") {
			v = s.Value[:min(12, len(s.Value))]
		}
	}
	return "askback " + v + " " + info.GoVersion
}
