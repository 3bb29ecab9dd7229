// Package side does things side by side so that what goes wrong in one of them stays where it belongs: a panic in a
// goroutine that nobody guards would end the process, and with it the executors of all other clusters.
package side

import (
	"fmt"
	"runtime/debug"
	"sync"
)

// Each calls do with 0 to n-1, at most so many at a time, and returns when all have returned. A panic in one of them
// goes on in the caller, which is guarded, once the others are done.
func Each(n, atOnce int, do func(i int)) {
	turns := make(chan struct{}, atOnce)
	var running sync.WaitGroup
	var mu sync.Mutex
	var panicked any
	for i := range n {
		running.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			defer func() {
				if v := recover(); v != nil {
					mu.Lock()
					defer mu.Unlock()
					panicked = fmt.Sprintf("%v, in a goroutine at\n%s", v, debug.Stack())
				}
			}()
			do(i)
		})
	}
	running.Wait()
	if panicked != nil {
		panic(panicked)
	}
}
