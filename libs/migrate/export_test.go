package migrate

// UpFolder migrates one schema from any folder.
var UpFolder = upFolder

// OldestServed and ReachesBack are how far migrations reach back.
var (
	OldestServed = oldestServed
	ReachesBack  = reachesBack
)

// ConcurrentStatements are the statements of a file that runs outside of a transaction.
var ConcurrentStatements = concurrentStatements

// Serves says whether a schema at a version, which serves binaries made for from, serves one made for need.
func Serves(version, from, need int64) error {
	return info{version: version, oldest: OldestBinary, from: from}.serves("gateway", need, "")
}
