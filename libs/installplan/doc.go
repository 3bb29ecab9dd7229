// Package installplan is the aggregate of one install plan. Three services write to it: the
// resolver proposes and supersedes, the gateway approves and rejects, the installer's recorder
// starts, blocks, finishes and fails it. Decide and Evolve are pure; time and ids come in as data.
package installplan
