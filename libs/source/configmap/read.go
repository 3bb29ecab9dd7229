package configmap

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/kubeconfig"
	"github.com/chandler-fleet/chandler/libs/source/internal/spool"
	"github.com/chandler-fleet/chandler/libs/source/internal/web"
)

const (
	// MaxBytes bounds a config map; an API server takes 1 MiB, and JSON may need up to six times as much.
	MaxBytes = 8 << 20
	// Timeout bounds the one call that is made.
	Timeout = 30 * time.Second
)

// Options say which config map to read.
type Options struct {
	// Kubeconfig is complete in itself: it refers to no file and runs no program.
	Kubeconfig []byte
	Namespace  string
	Name       string
	// Dir is where the catalog is written until it is closed; "" is the system's temporary directory.
	Dir string
}

// Probe returns the fingerprint of a config map: a digest of its data.
func Probe(ctx context.Context, o Options) (string, error) {
	data, err := o.get(ctx)
	return fingerprint(data), err
}

// Open reads the catalog of a config map. The tree is valid until it is closed.
func Open(ctx context.Context, o Options) (tree fs.FS, sum string, closeTree func() error, err error) {
	data, err := o.get(ctx)
	if err != nil {
		return nil, "", nil, err
	}
	s, err := spool.New(o.Dir, 0)
	if err != nil {
		return nil, "", nil, err
	}
	if err := convert(data, s); err != nil {
		return nil, "", nil, errors.Join(err, s.Close())
	}
	return s.FS(), fingerprint(data), s.Close, nil
}

func fingerprint(data map[string]string) string {
	h := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(data)) {
		h.Write([]byte(strconv.Quote(key) + strconv.Quote(data[key])))
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// get asks the API server for the config map.
func (o Options) get(ctx context.Context) (data map[string]string, err error) {
	if len(validation.IsDNS1123Label(o.Namespace)) > 0 || len(validation.IsDNS1123Subdomain(o.Name)) > 0 {
		return nil, errs.New(errs.Invalid, "config map %q in namespace %q: one of the two is no name", o.Name,
			o.Namespace).At("configMap", "R-CAT-84")
	}
	client, request, err := o.request(ctx)
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	response, err := client.Do(request)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, web.About(web.Explain(err), "config map %s/%s", o.Namespace, o.Name)
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	raw, err := io.ReadAll(io.LimitReader(response.Body, MaxBytes+1))
	switch {
	case response.StatusCode != http.StatusOK:
		return nil, o.refused(response.StatusCode)
	case err != nil:
		return nil, web.About(web.Explain(err), "config map %s/%s", o.Namespace, o.Name)
	case len(raw) > MaxBytes:
		return nil, errs.New(errs.TooLarge, "config map %s/%s has more than %d bytes", o.Namespace, o.Name,
			MaxBytes).At("configMap", "configmap.MaxBytes")
	}
	var m corev1.ConfigMap
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, errs.Wrap(errs.Unavailable, err, "the answer for config map %s/%s", o.Namespace, o.Name)
	}
	return m.Data, nil
}

// refused says what a status of the API server means.
func (o Options) refused(code int) error {
	kind := errs.Unavailable
	switch code {
	case http.StatusNotFound:
		kind = errs.NotFound
	case http.StatusUnauthorized, http.StatusForbidden:
		kind = errs.Forbidden
	}
	return errs.New(kind, "config map %s/%s: the API server answered %d %s", o.Namespace, o.Name, code,
		http.StatusText(code)).At("configMap", "R-CAT-84")
}

// request makes the call and who makes it.
func (o Options) request(ctx context.Context) (*http.Client, *http.Request, error) {
	// Read here and written anew, before clientcmd, which opens the files that a kubeconfig names while it loads it.
	config, err := o.config()
	if err != nil {
		return nil, nil, err
	}
	config.Timeout = Timeout
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, nil, errs.New(errs.Invalid,
			"the kubeconfig for config map %s/%s cannot be used: its certificates or keys are broken", o.Namespace,
			o.Name).At("secrets", "R-DIS-4")
	}
	// A credential is added to every request, so no answer may lead it to another server.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, nil, errs.New(errs.Invalid, "the kubeconfig for config map %s/%s names no usable server",
			o.Namespace, o.Name).At("secrets", "R-DIS-4")
	}
	address := server.JoinPath("api/v1/namespaces", o.Namespace, "configmaps", o.Name)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), http.NoBody)
	if err != nil {
		return nil, nil, errs.Wrap(errs.Invalid, err, "config map %s/%s", o.Namespace, o.Name)
	}
	request.Header.Set("Accept", "application/json")
	return client, request, nil
}

// config makes the kubeconfig a client's configuration. Nothing of it may run a program here, read a file of this
// machine
// or show the credential to somebody in between; nobody can waive that for a catalog.
func (o Options) config() (*rest.Config, error) {
	parsed, err := kubeconfig.Load(o.Kubeconfig)
	if err != nil {
		return nil, errs.New(errs.KindOf(err), "the kubeconfig for config map %s/%s cannot be used: %s", o.Namespace,
			o.Name,
			err).At("secrets", "R-DIS-4")
	}
	canonical, err := parsed.Canonical()
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(canonical)
	if err != nil { // whose text could quote the credential
		return nil, errs.New(errs.Invalid,
			"the kubeconfig for config map %s/%s cannot be used: it names no server or no user",
			o.Namespace, o.Name).At("secrets", "R-DIS-4")
	}
	return config, nil
}
