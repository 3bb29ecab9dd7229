package podlogs

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
)

const (
	// logTime bounds one log: a node that does not answer keeps those of others from nobody.
	logTime = 3 * time.Second
	// readAtOnce bounds the logs that are read side by side: MaxLogContainers on nodes that do not answer take two
	// rounds of logTime, which fit into answerTime.
	readAtOnce = 10
)

// logReader reads the logs of containers.
type logReader struct {
	cluster string
	open    func(context.Context, source, corev1.PodLogOptions) (io.ReadCloser, error)
}

// read reads the logs side by side; each has the same share of the answer, so that none of them crowds out the others.
func (r logReader) read(ctx context.Context, q protocol.LogQuestion, sources []source, after cursor) (
	protocol.LogAnswer, error,
) {
	answer := protocol.LogAnswer{Containers: []protocol.ContainerLog{}}
	if n := len(sources) - protocol.MaxLogContainers; n > 0 {
		sources, answer.LeftOut = sources[:protocol.MaxLogContainers], n
	}
	parts := make([]part, len(sources))
	side, each := errgroup.WithContext(ctx)
	side.SetLimit(readAtOnce)
	for i, s := range sources {
		side.Go(func() (err error) {
			from, known := after[s.key()]
			parts[i], err = r.container(each, q, s, from, known, protocol.MaxLogBytes/len(sources))
			return err
		})
	}
	if err := side.Wait(); err != nil {
		return answer, err
	}
	next := cursor{}
	for i, s := range sources {
		p := parts[i]
		next[s.key()] = p.position
		answer.More = answer.More || p.more
		answer.Containers = append(answer.Containers, protocol.ContainerLog{
			Pod: s.pod, Container: s.container, Choices: s.choices, Lines: p.lines, Problem: p.problem,
		})
	}
	answer.After = next.String()
	return answer, nil
}

// container reads the log of one container. What a container wrote last before it was restarted is read first: that is
// why people look. Where it cannot be read for now, nothing is read behind it, and the next answer begins there again.
func (r logReader) container(
	ctx context.Context, q protocol.LogQuestion, s source, from position, known bool, room int,
) (part, error) {
	o := corev1.PodLogOptions{Container: s.container, Previous: q.Previous}
	switch {
	case q.After == "":
		return r.begin(ctx, q, s, o, room)
	case !known || q.Previous || s.restarts <= from.restarts:
		from.restarts = max(from.restarts, s.restarts)
		return r.log(ctx, s, o, from, room)
	}
	o.Previous = true
	last, err := r.log(ctx, s, o, from, room)
	if err != nil || last.more || last.again {
		return last, err
	}
	o.Previous = false
	p, err := r.log(ctx, s, o, position{restarts: s.restarts}, room-len(last.lines))
	p.lines, p.problem = slices.Concat(last.lines, p.lines), cmp.Or(p.problem, last.problem)
	if p.position.at.IsZero() { // it has not written anything yet
		p.position.at, p.position.lines = last.position.at, last.position.lines
	}
	return p, err
}

// begin reads a log for the first time. Where no line is young enough, what comes later begins behind the last one that
// there was before the others were asked for, so that none is lost in between.
func (r logReader) begin(ctx context.Context, q protocol.LogQuestion, s source, o corev1.PodLogOptions, room int) (
	part, error,
) {
	start := position{restarts: s.restarts}
	none := q.Tail != nil && *q.Tail == 0
	if !none && q.SinceSeconds == 0 {
		o.TailLines = q.Tail
		return r.log(ctx, s, o, start, room)
	}
	one := int64(1)
	o.TailLines = &one
	last, err := r.log(ctx, s, o, start, room)
	if err != nil || last.problem != "" || none {
		last.lines, last.more = nil, false
		return last, err
	}
	o.TailLines, o.SinceSeconds = q.Tail, &q.SinceSeconds
	p, err := r.log(ctx, s, o, start, room)
	if p.position.at.IsZero() {
		p.position = last.position
	}
	return p, err
}

// log reads one log from a position. What the API server says against it, such as that the container has not started,
// is part of the answer; that Chandler may not read it is an error.
func (r logReader) log(ctx context.Context, s source, o corev1.PodLogOptions, from position, room int) (part, error) {
	o.Timestamps = true
	if !from.at.IsZero() {
		since := metav1.NewTime(from.at.Truncate(time.Second))
		o.SinceTime = &since
	}
	ctx, cancel := context.WithTimeout(ctx, logTime)
	defer cancel()
	stream, err := r.open(ctx, s, o)
	if err != nil {
		return r.problem(err, from)
	}
	p, err := readLines(stream, from, room, s.ended || o.Previous)
	if closing := stream.Close(); err == nil {
		err = closing
	}
	if err != nil {
		broken, failed := r.problem(err, p.position)
		broken.lines, broken.more = p.lines, len(p.lines) > 0
		return broken, failed
	}
	return p, nil
}

// problem makes an error a part of the answer. Whether it may be gone the next time is told apart by the status: that a
// log is not there, such as that of a container that was removed, API server and kubelet say with 400 and 404.
func (r logReader) problem(err error, at position) (part, error) {
	if apierrors.IsForbidden(err) {
		return part{}, understood(r.cluster, err)
	}
	text := err.Error()
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok {
		text = status.ErrStatus.Message
	}
	if errors.Is(err, context.DeadlineExceeded) {
		text = "the node does not answer in time"
	}
	gone := apierrors.IsBadRequest(err) || apierrors.IsNotFound(err)
	return part{position: at, problem: clip([]byte(text), maxProblem), again: !gone}, nil
}

// understood says what is to be done about what the API server refuses.
func understood(cluster string, err error) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	return errs.New(errs.Conflict, "Chandler may not read logs in cluster %s: %v: give %s the right again (Chandler binds "+
		"it to ClusterRole cluster-admin)", cluster, err, kube.ExecutorUser).At("cluster", "executor-rights")
}
