// Package git reads catalogs out of git repositories: over HTTPS and SSH, and from disk.
//
// A poll asks for the references alone and compares the commit. To open, that one commit is fetched
// without its history where the server can do so, into a private directory, and its files are written
// beside under the limits of libs/source/archive. There is no work tree, no configuration, no hook, no
// filter and no submodule: nothing of a repository can act.
//
// A pack is checked before it is used: in git's format a small one can expand to more than any disk
// holds.
package git
