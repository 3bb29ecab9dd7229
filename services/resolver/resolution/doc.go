// Package resolution holds what goes into a resolution and what comes out of it: Input with its View of the catalogs,
// Result with its components, the Record that is stored with a decision, and the Explanation of a failure. It decides
// nothing; package resolve does.
package resolution
