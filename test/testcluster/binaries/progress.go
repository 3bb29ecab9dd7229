package binaries

import (
	"fmt"
	"sync/atomic"
	"time"
)

const (
	// reportEvery is how long a person should at most look at a screen on which nothing moves.
	reportEvery = 5 * time.Second
	// waitEvery is how often those who only wait say so: the builder reports for all of them.
	waitEvery = time.Minute
)

// progress tells from time to time how far one long step is.
type progress struct {
	tell        func(line string)
	what        string
	start       time.Time
	done, total atomic.Int64
	quit        chan struct{}
	stopped     chan struct{}
}

func startProgress(tell func(string), what string, every time.Duration) *progress {
	p := &progress{tell: tell, what: what, start: time.Now(), quit: make(chan struct{}), stopped: make(chan struct{})}
	go p.run(every)
	return p
}

func (p *progress) expect(total int) { p.total.Store(int64(total)) }
func (p *progress) step()            { p.done.Add(1) }

// stop ends the reports.
func (p *progress) stop() {
	close(p.quit)
	<-p.stopped
}

func (p *progress) run(every time.Duration) {
	defer close(p.stopped)
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			p.tell(p.line())
		case <-p.quit:
			return
		}
	}
}

func (p *progress) line() string {
	line := p.what
	if done, total := p.done.Load(), p.total.Load(); total > done+1 {
		line += fmt.Sprintf(", %d of %d packages", done, total)
	} else if total > 0 { // the last one is the program itself
		line += ", linking"
	}
	return fmt.Sprintf("%s, %s", line, time.Since(p.start).Round(time.Second))
}
