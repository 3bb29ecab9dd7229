package archive

import (
	"fmt"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// Rules that an archive may break: they are in the errors (errs.Error.Rule), the entry in their field.
const (
	RuleFormat     = "archive-format"     // neither tar nor tar.gz nor tar.zst, or damaged
	RuleTruncated  = "archive-truncated"  // it ends before its end
	RuleName       = "archive-name"       // a name that is empty, absolute, escapes, or is no UTF-8
	RuleLink       = "archive-link"       // a link that leaves, or a path that passes through one
	RuleKind       = "archive-kind"       // a device, a pipe, a sparse file
	RuleDuplicate  = "archive-duplicate"  // one name, two entries
	RuleEntries    = "archive-entries"    // too many
	RuleNames      = "archive-names"      // names that are too large together
	RuleDepth      = "archive-depth"      // directories too deep
	RuleEntryBytes = "archive-entry-size" // one file too large
	RuleBytes      = "archive-size"       // all files too large
	RuleCompressed = "archive-compressed" // more to fetch than is taken
	RuleRatio      = "archive-ratio"      // a decompression bomb
)

// Limits bound what is unpacked for one source.
type Limits struct {
	Entries    int   // entries of all kinds, those that are passed over included
	Names      int64 // bytes of the names of all entries: they are kept in memory
	EntryBytes int64 // one file
	Bytes      int64 // all files together; a link to one counts as often as it would be read
	Compressed int64 // what is fetched or read to get at them
	Depth      int   // directories below one another
	Ratio      int64 // bytes unpacked for each byte read, after the first RatioFree
	RatioFree  int64
}

// Standard are the limits of the product, with the largest real values that were seen.
func Standard() Limits {
	return Limits{
		Entries:    200_000,  // the largest real tree has 12,000; the layers of a base image some 30,000
		Names:      64 << 20, // 12,000 real files have 1 MB of names
		EntryBytes: 1 << 30,  // published catalogs of hundreds of packages in one file have about 300 MB
		Bytes:      2 << 30,  // all bundles of a large catalog unpacked have 570 MB
		Compressed: 1 << 30,  // the same with gzip have 60 MB
		Depth:      32,       // real catalogs use 5; a path of an image some 10
		Ratio:      250,      // the best that is known, zstd over near-identical bundles, gains a factor of 95
		RatioFree:  32 << 20, // an empty archive of zeros is no bomb yet
	}
}

// MaxName bounds the name of an entry, as file systems do their paths.
const MaxName = 4096

func refuse(k errs.Kind, entry, rule, format string, args ...any) error {
	return errs.New(k, "entry %q %s", short(entry), fmt.Sprintf(format, args...)).At(short(entry), rule)
}

// short keeps what a hostile name adds to a message small.
func short(name string) string {
	const most = 200
	if len(name) > most {
		return name[:most] + "…"
	}
	return name
}
