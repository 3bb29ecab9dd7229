// Package store holds the indexer's state in Postgres, schema catalog: catalogs as the log has
// them, what a poll found, and everything that is stored once by digest.
//
// Order of writing (a crash between any two lines must change nothing): content, package documents
// and blobs first, in transactions of their own, since nothing refers to them yet and writing them
// again is a no-op; then, in one transaction, the revision, the live pointer and the event.
package store

import (
	"github.com/chandler-fleet/chandler/libs/bodies"
	"github.com/chandler-fleet/chandler/libs/content"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/pg"
)

// IntentsConsumer is the key of the checkpoint of the tables of catalogs.
const IntentsConsumer = "catalog-indexer.intents"

// Tables of lanes. The column "cluster" holds the stream; in DirtyTable "namespace" holds the variant.
const (
	DirtyTable = "catalog.dirty"   // catalogs to be polled
	FetchTable = "catalog.fetches" // catalogs with bundle images to be fetched
)

// Store is the schema catalog: one type for each purpose. What belongs into a transaction of somebody else is a
// function that takes it (Intents, Clusters, PutVariants, TakeUpWanted, PutSearch).
type Store struct {
	Catalogs  *Catalogs
	Outcomes  *Outcomes
	Contents  *Contents
	Documents *Documents
	Images    *Images
	Upgrades  *Upgrades
	Search    *Search
	Collector *Collector
}

// New returns the store of a database; log is where outcomes are appended.
func New(pool *pg.Pool, log *eventlog.Log, keys bodies.Keys) *Store {
	reader := content.NewReader()
	contents := &Contents{pool: pool, reader: reader}
	documents := &Documents{pool: pool, reader: reader, contents: contents}
	return &Store{
		Catalogs:  &Catalogs{pool: pool, bodies: keys},
		Outcomes:  &Outcomes{pool: pool, log: log},
		Contents:  contents,
		Documents: documents,
		Images:    &Images{pool: pool, log: log},
		Upgrades:  &Upgrades{pool: pool},
		Search:    &Search{pool: pool, documents: documents},
		Collector: &Collector{pool: pool, log: log, documents: documents},
	}
}
