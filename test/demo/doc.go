// Command demo runs the main job of Chandler on this machine for a person to watch: real API servers, four services,
// a catalog, subscriptions on two clusters, an approval, an upgrade, and the story that the event log tells of it.
//
//	demo up [--catalog dir]    set up, run the scenes, leave everything running
//	demo up --record file.svg  the same, and write a recording of the scenes
//	demo down                  stop everything and leave nothing behind
//
// Everything belongs to one background process, the keeper: when it ends, in whatever way, all of it ends.
//
// On a fresh machine there is nothing but the sources. This program needs the standard library only, so that it runs at
// once; it has everything else compiled, in the order in which there is something to show.
package main
