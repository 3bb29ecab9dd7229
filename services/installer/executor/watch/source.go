package watch

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversionscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/chandler-fleet/chandler/libs/errs"
)

const (
	// maxEventBytes bounds one event: what etcd keeps of an object is a tenth of it.
	maxEventBytes = 16 << 20
	// lengthBytes come before an event in protobuf.
	lengthBytes = 4
	// metadataOnly follows a content type: the API server is to leave everything else out.
	metadataOnly = ";g=meta.k8s.io;v=v1;as="
)

// errNoEvent is what something else than an event ends a stream with.
var errNoEvent = errors.New("the API server sent what is no event")

// Source is where a watch hears of the objects of a kind.
type Source interface {
	// List returns a page of a kind's objects.
	List(ctx context.Context, k Kind, o metav1.ListOptions) (*metav1.PartialObjectMetadataList, error)
	// Watch begins to follow a kind; the end of ctx ends it.
	Watch(ctx context.Context, k Kind, o metav1.ListOptions) (Stream, error)
}

// Stream is a sequence of events.
type Stream interface {
	// Next waits for an event; io.EOF ends the stream. What Kubernetes itself reports is the error of that.
	Next() (watch.EventType, *metav1.PartialObjectMetadata, error)
	Close() error
}

// client is a Source that reads events where they are waited for: beside that of its connection no goroutine, and
// between two events no buffer, is kept for a kind.
type client struct{ rest *rest.RESTClient }

// NewSource returns the source of a cluster. The configuration must not bound the time of a request.
func NewSource(config *rest.Config) (Source, error) {
	c := metadata.ConfigFor(config)
	c.GroupVersion, c.APIPath = &metav1.SchemeGroupVersion, "/unused" // each request names its own path
	r, err := rest.RESTClientFor(c)
	if err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "kubeconfig")
	}
	return client{r}, nil
}

// List implements Source.
func (c client) List(ctx context.Context, k Kind, o metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	got, err := c.request(k, o, "PartialObjectMetadataList").Do(ctx).Get()
	if err != nil {
		return nil, err
	}
	list, ok := got.(*metav1.PartialObjectMetadataList)
	if !ok {
		return nil, errs.New(errs.Unavailable, "the API server answered a list of %s with %T", k.Resource, got)
	}
	return list, nil
}

// Watch implements Source.
func (c client) Watch(ctx context.Context, k Kind, o metav1.ListOptions) (Stream, error) {
	body, err := c.request(k, o, "PartialObjectMetadata").Stream(ctx)
	if err != nil {
		return nil, err
	}
	return &stream{body: body}, nil
}

func (c client) request(k Kind, o metav1.ListOptions, as string) *rest.Request {
	path := []string{"api", k.GVK.Version}
	if k.GVK.Group != "" {
		path = []string{"apis", k.GVK.Group, k.GVK.Version}
	}
	if k.Namespace != "" {
		path = append(path, "namespaces", k.Namespace)
	}
	r := c.rest.Get().AbsPath(append(path, k.Resource)...).
		SetHeader("Accept", runtime.ContentTypeProtobuf+metadataOnly+as+","+runtime.ContentTypeJSON+metadataOnly+as)
	for name, value := range map[string]string{
		"labelSelector": o.LabelSelector, "resourceVersion": o.ResourceVersion,
		"resourceVersionMatch": string(o.ResourceVersionMatch), "continue": o.Continue,
	} {
		if value != "" {
			r = r.Param(name, value)
		}
	}
	for name, set := range map[string]bool{
		"watch": o.Watch, "allowWatchBookmarks": o.AllowWatchBookmarks,
		"sendInitialEvents": o.SendInitialEvents != nil && *o.SendInitialEvents,
	} {
		if set {
			r = r.Param(name, "true")
		}
	}
	if o.Limit > 0 {
		r = r.Param("limit", strconv.FormatInt(o.Limit, 10))
	}
	if o.TimeoutSeconds != nil {
		r = r.Param("timeoutSeconds", strconv.FormatInt(*o.TimeoutSeconds, 10))
	}
	return r
}

// stream is the body of an answer that goes on: events in protobuf, each after its length, or in JSON where the server
// has nothing else.
type stream struct {
	body io.ReadCloser
	json *json.Decoder
}

// Close implements Stream.
func (s *stream) Close() error { return s.body.Close() }

// Next implements Stream.
func (s *stream) Next() (watch.EventType, *metav1.PartialObjectMetadata, error) {
	event, err := s.read()
	if err != nil {
		return "", nil, err
	}
	o, _, err := metainternalversionscheme.Codecs.UniversalDeserializer().Decode(event.Object.Raw, nil, nil)
	if err != nil {
		return "", nil, fmt.Errorf("%w: %w", errNoEvent, err)
	}
	if event.Type == string(watch.Error) {
		return "", nil, apierrors.FromObject(o)
	}
	m, ok := o.(*metav1.PartialObjectMetadata)
	if !ok {
		return "", nil, fmt.Errorf("%w: it is about a %T", errNoEvent, o)
	}
	return watch.EventType(event.Type), m, nil
}

func (s *stream) read() (event metav1.WatchEvent, err error) {
	if s.json != nil {
		err = s.json.Decode(&event)
		return event, err
	}
	var head [lengthBytes]byte
	if _, err := io.ReadFull(s.body, head[:]); err != nil {
		return event, err
	}
	if head[0] == '{' { // no length that is allowed begins so
		s.json = json.NewDecoder(io.MultiReader(bytes.NewReader(head[:]), s.body))
		err = s.json.Decode(&event)
		return event, err
	}
	length := binary.BigEndian.Uint32(head[:])
	if length > maxEventBytes {
		return event, fmt.Errorf("%w: it has %d bytes, more than %d", errNoEvent, length, maxEventBytes)
	}
	raw := make([]byte, length)
	if _, err := io.ReadFull(s.body, raw); err != nil {
		return event, fmt.Errorf("the stream ended within an event: %w", err)
	}
	if err := event.Unmarshal(raw); err != nil {
		return event, fmt.Errorf("%w: %w", errNoEvent, err)
	}
	return event, nil
}
