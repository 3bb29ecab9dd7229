// Package content is the form in which the manifests of many versions of one operator are stored
// (DESIGN, settled details: Content; docs/adr/0009).
//
// Versions of one package are near-identical, and no version is known before it comes. So a value (a
// canonical bundle) is cut into chunks where its own bytes say so (Split): an insertion moves the cuts
// near it and no others. What is stored of one package is its ChunkIndex: chunks that the index holds are
// named, new ones are gathered into packs. A pack is a row of chunks under one zstd frame, immutable and
// bounded; a recipe says of which chunks of which packs a value is made.
//
//	value  = one chunk behind the other          Split
//	pack   = zstd("CHP1" count length… chunk…)   Packer, Unpacker
//	recipe = version, sum, size, spans of chunks Recipe, Reader
//
// So a new version costs its new chunks, nothing that is stored is ever written again, and reading one
// value opens at most MaxPacks packs. Packs and recipes hold no identity: who stores them gives packs
// their names and keeps them beside the recipe, in the order of Recipe.Packs.
//
// Nothing here trusts what it reads: every length is compared with a named limit before memory is
// taken, and every value with the sum in its recipe. A bundle is compared with its digest, too.
package content
