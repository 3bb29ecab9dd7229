package proc

import (
	"os/exec"
	"runtime"
	"sync"
)

// forkRequest asks the forking thread to start one command.
type forkRequest struct {
	cmd  *exec.Cmd
	done chan<- error
}

// forker starts commands from one thread that lives as long as we do. The death signal of a process is sent when the
// *thread* that started it ends, and the threads of a Go program come and go.
var forker = sync.OnceValue(func() chan<- forkRequest {
	requests := make(chan forkRequest)
	go forkFromOneThread(requests)
	return requests
})

func forkFromOneThread(requests <-chan forkRequest) {
	runtime.LockOSThread()
	for request := range requests {
		request.done <- request.cmd.Start()
	}
}

func fork(cmd *exec.Cmd) error {
	done := make(chan error)
	forker() <- forkRequest{cmd: cmd, done: done}
	return <-done
}
