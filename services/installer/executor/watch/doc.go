// Package watch tells the executor which objects of a cluster change. It sees metadata only and keeps next to nothing
// of it, so that a cluster in which nothing happens costs next to nothing.
//
// A change is a hint to look, never a fact to act on: what is gone according to a watch may be hidden by a lost
// permission. Whoever acts asks the API server first.
package watch
