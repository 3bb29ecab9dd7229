// Package archive reads catalogs out of tar, tar.gz and tar.zst files, at a path or a URL, and holds what
// all sources share that unpack something: a private directory (Target) that takes entries under limits.
//
// An archive is written by a stranger. Every entry is checked before it is written, and each refusal
// names the entry and the rule: names that escape or are absolute, links that leave, devices,
// duplicates, too many or too large entries, compression beyond reason, an end in the midst. What was
// written until then is thrown away. Beside these checks the operating system itself keeps all writing
// and reading inside of the directory (os.Root).
//
// Layers of images differ in three points: names begin at the root of the image, so that a leading "/"
// means nothing; a later layer replaces what an earlier one brought; and whiteouts remove it.
package archive
