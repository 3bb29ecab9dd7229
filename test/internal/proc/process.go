package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// Spec says what to start.
type Spec struct {
	Name string   // what people call it; used in errors
	Path string   // the program
	Args []string // without the program's name
	Env  []string // the whole environment: nothing is inherited
	Dir  string   // working directory
	Log  string   // file that takes standard output and standard error

	// Outlive starts the process without a death signal. Only the test of the reaper wants that.
	Outlive bool
}

// Process is a child of ours.
type Process struct {
	spec   Spec
	cmd    *exec.Cmd
	id     ID
	done   chan struct{}
	err    error // how it ended; read after done is closed
	killed atomic.Bool
}

// Start starts the program and watches it in the background.
func Start(spec Spec) (*Process, error) {
	log, err := os.OpenFile(spec.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	defer func() { _ = log.Close() }() // the child has its own copy
	p := &Process{spec: spec, cmd: command(spec, log), done: make(chan struct{})}
	if err := fork(p.cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	// The child cannot be reaped before wait runs, so that its entry in the process table is there to be read.
	p.id, err = Of(p.cmd.Process.Pid)
	go p.wait()
	if err != nil {
		p.Kill()
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	return p, nil
}

func command(spec Spec, log *os.File) *exec.Cmd {
	cmd := exec.Command(spec.Path, spec.Args...)
	cmd.Env = spec.Env
	cmd.Dir = spec.Dir
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = attributes(spec.Outlive)
	return cmd
}

func (p *Process) wait() {
	p.err = p.cmd.Wait()
	close(p.done)
}

// ID names the process for others.
func (p *Process) ID() ID { return p.id }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Failure says that the process ended although nobody killed it, and shows the end of its log. It is nil while the
// process runs and when it was killed by us.
func (p *Process) Failure() error {
	select {
	case <-p.done:
	default:
		return nil
	}
	if p.killed.Load() {
		return nil
	}
	how := p.err
	if how == nil {
		how = errors.New("exit status 0")
	}
	return fmt.Errorf("%s ended by itself: %w\n%s", p.spec.Name, how, Tail(p.spec.Log))
}

// Log is the file that takes the output of the process.
func (p *Process) Log() string { return p.spec.Log }

// Name is what people call the process.
func (p *Process) Name() string { return p.spec.Name }

// Kill ends the process and waits for its end. Nothing a test cluster holds is worth an orderly end.
func (p *Process) Kill() {
	select {
	case <-p.done: // it ended before: Failure shall keep saying so
		return
	default:
	}
	p.killed.Store(true)
	_ = p.cmd.Process.Kill() // fails only when it has just ended
	<-p.done
}

// Suspend stops the process without ending it: its connections stay open and nothing answers. When it returns, none of
// its threads runs any more, or it has ended.
func (p *Process) Suspend() error {
	if err := p.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for {
		var stopped unix.Siginfo
		err := unix.Waitid(unix.P_PID, p.cmd.Process.Pid, &stopped, unix.WSTOPPED|unix.WNOWAIT, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err == nil || errors.Is(err, unix.ECHILD):
			return nil
		default:
			return fmt.Errorf("wait until %s has stopped: %w", p.spec.Name, err)
		}
	}
}

// Continue lets a suspended process run on.
func (p *Process) Continue() error { return p.signal(syscall.SIGCONT) }

func (p *Process) signal(sig syscall.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil {
		return fmt.Errorf("send %v to %s: %w", sig, p.spec.Name, err)
	}
	return nil
}
