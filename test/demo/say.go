package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// lookEvery is how often something is looked for that is waited for: fast enough to seem immediate.
const lookEvery = 100 * time.Millisecond

// mostLines bounds how much of the output of one command is shown: a catalog that somebody brings along may have
// hundreds of packages.
const mostLines = 60

// narrator writes what the demo does, with the time since its start.
type narrator struct {
	*screen
	record *recording // nil: nothing is recorded
	begin  time.Time
	scene  int
	bin    string        // folder of the programs
	env    []string      // that the command line tool finds the API by
	behind func() string // what goes on beside, for the line of progress; "" is nothing
}

func newNarrator() *narrator {
	return &narrator{screen: newScreen(os.Stdout, os.Getenv), begin: time.Now(), behind: func() string { return "" }}
}

// title begins a scene.
func (n *narrator) title(text string) {
	n.scene++
	head := fmt.Sprintf("%d. %s", n.scene, text)
	n.line("")
	n.line(n.bold(head) + n.dim("  ("+since(n.begin, time.Now())+")"))
	n.record.title(head)
}

// indent stands before everything below a title.
const indent = "   "

// say writes one line below the title.
func (n *narrator) say(text string) {
	n.line(strings.TrimRight(indent+text, " "))
	n.record.text(text)
}

// tell is progress with what goes on beside it.
func (n *narrator) tell(text string) {
	if beside := n.behind(); beside != "" {
		text += " · " + beside
	}
	n.progress(text)
}

// run shows a command of the CLI as a person would type it, and what it prints.
func (n *narrator) run(ctx context.Context, args ...string) error {
	n.typed(args...)
	out, err := n.quiet(ctx, args...)
	n.show(out)
	return err
}

// typed shows a command.
func (n *narrator) typed(args ...string) {
	text := "$ chandler " + quote(args)
	n.line("   " + n.dim(text))
	n.record.command(text)
}

// show shows the output of a command.
func (n *narrator) show(out string) {
	text := strings.TrimRight(out, "\n")
	if text == "" {
		return
	}
	all := strings.Split(text, "\n")
	for _, line := range all[:min(len(all), mostLines)] {
		n.say(line)
	}
	if more := len(all) - mostLines; more > 0 {
		n.say(fmt.Sprintf("… and %d lines more", more))
	}
}

// quiet runs a command of the CLI without showing it.
func (n *narrator) quiet(ctx context.Context, args ...string) (string, error) {
	return n.call(ctx, "chandler", args...)
}

// call runs one of the programs.
func (n *narrator) call(ctx context.Context, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(n.bin, program), args...)
	cmd.Env = append(append(os.Environ(), fmt.Sprintf("COLUMNS=%d", columns-len(indent))), n.env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return string(out), fmt.Errorf("%s %s: %w\n%s", program, quote(args), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return string(out), nil
}

// refused tells whether a command ended by itself with this status: it has said what it had to say.
func refused(err error, status int) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.ExitCode() == status
}

// quote writes paths below the working directory as a person would.
func quote(args []string) string {
	here, err := os.Getwd()
	if err != nil {
		return strings.Join(args, " ")
	}
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = strings.TrimPrefix(a, here+string(filepath.Separator))
		if strings.Contains(words[i], " ") {
			words[i] = "'" + words[i] + "'" // the demo types no quotes
		}
	}
	return strings.Join(words, " ")
}

// await asks until done, and says now and then what it still waits for. Without a bound it waits as long as ctx lasts.
func (n *narrator) await(ctx context.Context, what string, bound time.Duration,
	done func(context.Context) (detail string, ok bool, err error),
) error {
	if bound > 0 {
		var cancel func()
		ctx, cancel = context.WithTimeoutCause(ctx, bound, fmt.Errorf("not within %s", bound))
		defer cancel()
	}
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	begin, last := time.Now(), time.Now()
	for {
		detail, ok, err := done(ctx)
		if ctx.Err() == nil && err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if ok {
			return nil
		}
		if time.Since(last) > quietBound {
			n.tell(strings.TrimRight(fmt.Sprintf("%s, %s: %s", what, time.Since(begin).Round(time.Second), detail),
				": "))
			last = time.Now()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w; last seen: %s", what, context.Cause(ctx), detail)
		case <-ticker.C:
		}
	}
}

// during does something that takes a while and tells every now and then how far it is.
func (n *narrator) during(what func() string, do func() error) error {
	ended := make(chan error, 1)
	go func() { ended <- do() }()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	begin := time.Now()
	for {
		select {
		case err := <-ended:
			n.end()
			return err
		case <-ticker.C:
			if time.Since(begin) >= quietBound {
				n.tell(what() + ", " + time.Since(begin).Round(time.Second).String())
			}
		}
	}
}
