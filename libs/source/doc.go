// Package source holds the words for where a catalog comes from: the kinds of sources, their settings,
// the credentials that they refer to by name, mirrors and the template of an image reference. It is pure,
// so that gateway and CLI check settings with the rules by which the indexer uses them. The packages
// below it open the sources.
package source
