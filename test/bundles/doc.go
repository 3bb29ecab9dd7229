// Package bundles proves the executor on published operators: each is installed, upgraded along one edge of its
// catalog and removed again on a real API server, with the objects of the cluster compared before and after; and it
// measures what that costs beside a plain loop that applies the same objects.
//
//	make test-bundles                                     # the whole campaign
//	make test-bundles BUNDLES=DIR                         # every package of a tree of bundle directories, with a table
//	make test-bundles BUNDLES=all                         # the same of all archives of the test data
//	go test ./test/bundles                                # a representative part of it, as in make test
//	go test ./test/bundles -run '^$' -bench . -benchtime 1x
package bundles
