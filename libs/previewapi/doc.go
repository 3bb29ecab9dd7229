// Package previewapi is what gateway and resolver exchange about previews: events that are not in the log, and what
// the resolver would decide if they were (PEERS P19). It holds types alone. The gateway turns a request into such
// events by the rules of the real writes; the resolver answers.
//
// A preview is asked for once, under an id that the gateway draws, and its answer is kept outside the log for
// Lifetime. It covers the scopes that the events can touch, page by page. A preview that was read to its end can be
// checked: while the check finds no change, the real events lead to what the preview says.
package previewapi
