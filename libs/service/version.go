package service

import (
	"runtime/debug"
	"sync"
)

// version is stamped by the build: -ldflags "-X github.com/chandler-fleet/chandler/libs/service.version=0.1.0". A
// constant cannot be stamped.
var version string

// maxRevision is as much of a commit's name as people read.
const maxRevision = 12

// Version is the version of this program: the build's stamp ("0.1.0"), else what it knows of its commit
// ("c9880c1f2a3b-dirty"), else "unknown".
var Version = sync.OnceValue(func() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	revision, modified := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(len(s.Value), maxRevision)]
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = "-dirty"
		}
	}
	if revision == "" {
		return "unknown"
	}
	return revision + modified
})
