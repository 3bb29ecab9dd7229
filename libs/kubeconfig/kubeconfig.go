// Package kubeconfig reads a kubeconfig that a stranger may have written, before anything acts on it.
//
// A kubeconfig is not data alone: client-go runs programs (exec, auth-provider) and opens files (tokenFile,
// certificate-authority and others) that it names, on the machine that loads it. Whoever may register a cluster must
// not thereby act as the service. So the bytes are decoded here into the types of clientcmd and never handed to
// clientcmd themselves: keys that these types do not have, keys that differ in their case alone (which one decoder
// takes for the key and another does not), and keys that come twice are refused; so is whatever runs a program or names
// a file. What is left is written anew by Canonical: one cluster, one user, one context, and nothing that was not
// understood. Only those bytes are stored and loaded.
//
// Faults name the path of the field, such as users[0].user.exec, and never quote a value: any value may be a secret.
// The package is pure.
package kubeconfig

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	strictjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// MaxBytes bounds a kubeconfig: the largest in use hold a few certificates of some kilobytes each.
const MaxBytes = 256 << 10

// MaxEntries bounds clusters, users and contexts, each: those of a person who works with every cluster of a large fleet
// fit, and a fault in each of them still makes a readable answer.
const MaxEntries = 500

// MaxFaults bounds the faults of one kubeconfig that are told.
const MaxFaults = 50

// Names of the rules; they are part of the API.
const (
	RuleMaxLength       = "max-length"
	RuleMaxItems        = "max-items"
	RuleParses          = "kubeconfig-parses"
	RuleKnownKeys       = "kubeconfig-known-keys"
	RuleUnique          = "kubeconfig-unique"
	RuleContext         = "kubeconfig-current-context"
	RuleServer          = "kubeconfig-server"
	RuleUser            = "kubeconfig-user"
	RuleNoExec          = "kubeconfig-no-exec"
	RuleNoAuthPlugin    = "kubeconfig-no-auth-provider"
	RuleNoFiles         = "kubeconfig-no-file-references"
	RuleNoImpersonation = "kubeconfig-no-impersonation"
	RuleTLS             = "kubeconfig-tls"
	RuleNoProxy         = "kubeconfig-no-proxy"
	RuleVerifies        = "kubeconfig-verifies-server"
)

// Waiver is what an administrator may allow the kubeconfig of one cluster. Each of them shows its credential, or lets
// others answer in the cluster's place, to somebody on the way.
type Waiver string

// The waivers. They are part of events and of the API.
const (
	WaiveHTTP       Waiver = "http"
	WaiveProxy      Waiver = "proxy-url"
	WaiveUnverified Waiver = "insecure-skip-tls-verify"
)

// Waivers are all of them, in order.
func Waivers() []Waiver { return []Waiver{WaiveHTTP, WaiveUnverified, WaiveProxy} }

// Fault is one thing that is wrong with a kubeconfig.
type Fault struct {
	Path    string // of a field in it, "" for the whole
	Rule    string
	Message string
	Waiver  Waiver // with which it would be none, "" if nobody can waive it
}

// String is the fault as a clause that begins with its place. A fault alone is no error: Load and callers of Read say
// all of them in one.
func (f Fault) String() string {
	if f.Path == "" {
		return "the kubeconfig " + f.Message
	}
	return "the kubeconfig's " + f.Path + " " + f.Message
}

// Config is a kubeconfig that may be used.
type Config struct {
	// Waived are the waivers without which it would have been refused, in order.
	Waived  []Waiver
	cluster clientcmdv1.Cluster
	user    *clientcmdv1.AuthInfo
}

// Read returns the kubeconfig, or what is wrong with it. waived is what an administrator allows.
func Read(raw []byte, waived ...Waiver) (Config, []Fault) {
	r := reader{waived: waived}
	c, ok := r.decode(raw)
	if !ok {
		return Config{}, r.faults
	}
	r.entries(c)
	out := r.current(c)
	if len(r.faults) > 0 {
		return Config{}, r.faults
	}
	slices.Sort(r.used)
	out.Waived = slices.Compact(r.used)
	return out, nil
}

// acts reports a fault of a document that is a kubeconfig, and is refused for what it would do.
func (f Fault) acts() bool {
	return f.Waiver != "" || slices.Contains([]string{
		RuleNoExec, RuleNoAuthPlugin, RuleNoFiles, RuleNoImpersonation,
	}, f.Rule)
}

// Load is Read with an error that joins the faults: of kind errs.Forbidden if one of them is what the kubeconfig would
// do, else errs.Invalid.
func Load(raw []byte, waived ...Waiver) (Config, error) {
	c, faults := Read(raw, waived...)
	if len(faults) == 0 {
		return c, nil
	}
	texts := make([]string, len(faults))
	for i, f := range faults {
		texts[i] = f.String()
	}
	kind := errs.Invalid
	if slices.ContainsFunc(faults, Fault.acts) {
		kind = errs.Forbidden
	}
	return Config{}, errs.New(kind, "%s", strings.Join(texts, "; ")).At(faults[0].Path, faults[0].Rule)
}

// entry is the name that everything has in a canonical kubeconfig.
const entry = "chandler"

// Canonical writes the kubeconfig anew: the cluster and the user of the current context, with the fields that Read
// knows and no others. Equal kubeconfigs have equal bytes. They hold secrets.
func (c Config) Canonical() ([]byte, error) {
	from := c.cluster
	out := clientcmdv1.Config{
		Kind: "Config", APIVersion: "v1", CurrentContext: entry,
		Clusters: []clientcmdv1.NamedCluster{{Name: entry, Cluster: clientcmdv1.Cluster{
			Server: from.Server, TLSServerName: from.TLSServerName, InsecureSkipTLSVerify: from.InsecureSkipTLSVerify,
			CertificateAuthorityData: from.CertificateAuthorityData, ProxyURL: from.ProxyURL,
		}}},
		AuthInfos: []clientcmdv1.NamedAuthInfo{},
		Contexts:  []clientcmdv1.NamedContext{{Name: entry, Context: clientcmdv1.Context{Cluster: entry}}},
	}
	if u := c.user; u != nil {
		out.Contexts[0].Context.AuthInfo = entry
		out.AuthInfos = append(out.AuthInfos, clientcmdv1.NamedAuthInfo{Name: entry, AuthInfo: clientcmdv1.AuthInfo{
			ClientCertificateData: u.ClientCertificateData, ClientKeyData: u.ClientKeyData, Token: u.Token,
			Username: u.Username, Password: u.Password,
		}})
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return nil, errs.New(errs.Internal, "a kubeconfig cannot be written") // the cause could quote it
	}
	return raw, nil
}

// Server is the address of the API server.
func (c Config) Server() string { return c.cluster.Server }

// WithToken returns the kubeconfig of the same cluster for who has a token, and no other credential.
func (c Config) WithToken(token string) Config {
	c.user = &clientcmdv1.AuthInfo{Token: token}
	return c
}

// String and GoString keep values out of logs, should one ever be printed.
func (c Config) String() string { return "kubeconfig" }

// GoString implements fmt.GoStringer.
func (c Config) GoString() string { return c.String() }

// reader collects what is wrong.
type reader struct {
	waived []Waiver
	used   []Waiver
	faults []Fault
}

func (r *reader) addf(path, rule, format string, args ...any) {
	r.add(Fault{Path: path, Rule: rule, Message: fmt.Sprintf(format, args...)})
}

func (r *reader) add(f Fault) {
	if len(r.faults) < MaxFaults {
		r.faults = append(r.faults, f)
	}
}

// decode decodes by the types of clientcmd. Texts of decoders may quote the input; they are left out.
func (r *reader) decode(raw []byte) (c clientcmdv1.Config, ok bool) {
	if len(raw) > MaxBytes {
		r.addf("", RuleMaxLength, "has %d bytes, %d are allowed", len(raw), MaxBytes)
		return c, false
	}
	document, err := yaml.YAMLToJSONStrict(raw)
	if err != nil {
		r.addf("", RuleParses, "is not a YAML or JSON document, or has a key twice")
		return c, false
	}
	strict, err := strictjson.UnmarshalStrict(document, &c)
	if err != nil {
		r.addf("", RuleParses, "is not of the form of a kubeconfig")
		return c, false
	}
	for _, fault := range strict {
		r.unknown(fault.Error())
	}
	if c.Kind != "" && c.Kind != "Config" {
		r.addf("kind", RuleParses, "is not Config")
	}
	if c.APIVersion != "" && c.APIVersion != "v1" {
		r.addf("apiVersion", RuleParses, "is not v1")
	}
	r.count("clusters", len(c.Clusters))
	r.count("users", len(c.AuthInfos))
	r.count("contexts", len(c.Contexts))
	return c, len(r.faults) == 0
}

func (r *reader) count(path string, n int) {
	if n > MaxEntries {
		r.addf(path, RuleMaxItems, "has %d entries, %d are allowed", n, MaxEntries)
	}
}

// reStrict is what the strict decoder says of a key.
var reStrict = regexp.MustCompile(`^(unknown|duplicate) field "(.*)"$`)

// rePath is the path of an entry that a key may be in: names of fields and numbers.
var rePath = regexp.MustCompile(`^[a-z-]+(\[\d+\])?(\.[a-zA-Z-]+(\[\d+\])?)*$`)

// known are the keys that mean something in a kubeconfig. A key that differs from one of them in its case is named in
// full; of any other only the place is told: in a broken document a secret may stand where a key is read.
var known = byLower(
	"kind", "apiVersion", "preferences", "clusters", "users", "contexts", "current-context", "extensions", "name",
	"cluster", "user", "context", "server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority",
	"certificate-authority-data", "proxy-url", "disable-compression", "client-certificate", "client-key",
	"client-certificate-data", "client-key-data", "token", "tokenFile", "as", "as-uid", "as-groups",
	"as-user-extra", "username", "password", "auth-provider", "exec", "namespace",
)

func byLower(keys ...string) map[string]string {
	out := map[string]string{}
	for _, key := range keys {
		out[strings.ToLower(key)] = key
	}
	return out
}

func (r *reader) unknown(said string) {
	m := reStrict.FindStringSubmatch(said)
	if m == nil {
		r.addf("", RuleKnownKeys, "has a key that a kubeconfig does not have")
		return
	}
	parent, key := "", m[2]
	if i := strings.LastIndexByte(key, '.'); i >= 0 {
		parent, key = key[:i], key[i+1:]
	}
	key, _, _ = strings.Cut(key, "[")
	switch right, near := known[strings.ToLower(key)]; {
	case parent != "" && !rePath.MatchString(parent):
		r.addf("", RuleKnownKeys, "has a key that a kubeconfig does not have")
	case near && key != right:
		r.addf(join(parent, key), RuleKnownKeys, "is not a key of a kubeconfig: in another case it is %s", right)
	case near:
		r.addf(join(parent, key), RuleKnownKeys, "comes twice, or does not belong there")
	case parent == "":
		r.addf("", RuleKnownKeys, "has a key that a kubeconfig does not have")
	default:
		r.addf(parent, RuleKnownKeys, "has a key that a kubeconfig does not have there")
	}
}

func join(parent, key string) string {
	if parent == "" {
		return key
	}
	return parent + "." + key
}

// entries refuses what would act here in any entry, also in one that is not used: who sends it means something by it.
func (r *reader) entries(c clientcmdv1.Config) {
	names := map[string]bool{}
	unique := func(list, name string, i int) {
		if key := list + "/" + name; names[key] {
			r.addf(fmt.Sprintf("%s[%d].name", list, i), RuleUnique, "is that of another entry")
		} else {
			names[key] = true
		}
	}
	for i, x := range c.Clusters {
		unique("clusters", x.Name, i)
		r.file(fmt.Sprintf("clusters[%d].cluster.certificate-authority", i), x.Cluster.CertificateAuthority)
	}
	for i, x := range c.Contexts {
		unique("contexts", x.Name, i)
	}
	for i, x := range c.AuthInfos {
		unique("users", x.Name, i)
		r.program(fmt.Sprintf("users[%d].user.", i), x.AuthInfo)
	}
}

func (r *reader) file(path, value string) {
	if value != "" {
		r.addf(
			path, RuleNoFiles, "names a file: nothing is read from this machine; put the content into the kubeconfig",
		)
	}
}

func (r *reader) program(at string, u clientcmdv1.AuthInfo) {
	r.file(at+"client-certificate", u.ClientCertificate)
	r.file(at+"client-key", u.ClientKey)
	r.file(at+"tokenFile", u.TokenFile)
	if u.Exec != nil {
		r.addf(at+"exec", RuleNoExec,
			"would run a program: use a token or a client certificate")
	}
	if u.AuthProvider != nil {
		r.addf(at+"auth-provider", RuleNoAuthPlugin,
			"asks for a plugin: use a token or a client certificate")
	}
	if u.Impersonate != "" || u.ImpersonateUID != "" || len(u.ImpersonateGroups) > 0 ||
		len(u.ImpersonateUserExtra) > 0 {
		r.addf(at+"as", RuleNoImpersonation,
			"impersonates somebody: Chandler impersonates its own account, so that this one would not count")
	}
}

// current is what the current context uses.
func (r *reader) current(c clientcmdv1.Config) (out Config) {
	if c.CurrentContext == "" {
		r.addf("current-context", RuleContext, "is missing")
		return out
	}
	i := slices.IndexFunc(c.Contexts, func(x clientcmdv1.NamedContext) bool { return x.Name == c.CurrentContext })
	if i < 0 {
		r.addf("current-context", RuleContext, "is not among the contexts")
		return out
	}
	of := c.Contexts[i].Context
	j := slices.IndexFunc(c.Clusters, func(x clientcmdv1.NamedCluster) bool { return x.Name == of.Cluster })
	if j < 0 {
		r.addf(fmt.Sprintf("contexts[%d].context.cluster", i), RuleServer, "is not among the clusters")
	} else {
		out.cluster = c.Clusters[j].Cluster
		r.server(fmt.Sprintf("clusters[%d].cluster.", j), out.cluster)
	}
	if of.AuthInfo == "" {
		return out
	}
	k := slices.IndexFunc(c.AuthInfos, func(x clientcmdv1.NamedAuthInfo) bool { return x.Name == of.AuthInfo })
	if k < 0 {
		r.addf(fmt.Sprintf("contexts[%d].context.user", i), RuleUser, "is not among the users")
		return out
	}
	out.user = &c.AuthInfos[k].AuthInfo
	return out
}

func (r *reader) server(at string, c clientcmdv1.Cluster) {
	u, err := url.Parse(c.Server)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		r.addf(at+"server", RuleServer, "is missing, or not of the form https://HOST:PORT")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		r.addf(at+"server", RuleServer, "has more than scheme, host, port and path")
	case u.Scheme == "http":
		r.waive(
			at+"server", RuleTLS, WaiveHTTP,
			"is without TLS, so that whoever is on the way reads the credential: write https://",
		)
	}
	if c.InsecureSkipTLSVerify {
		r.waive(at+"insecure-skip-tls-verify", RuleVerifies, WaiveUnverified,
			"switches off the check of the server's certificate: whoever is on the way can answer in its place")
	}
	if c.ProxyURL == "" {
		return
	}
	if p, err := url.Parse(c.ProxyURL); err != nil || p.Host == "" ||
		!slices.Contains([]string{"http", "https", "socks5"}, p.Scheme) {
		r.addf(at+"proxy-url", RuleNoProxy, "is not of the form https://HOST:PORT, http:// or socks5://")
		return
	}
	r.waive(at+"proxy-url", RuleNoProxy, WaiveProxy, "leads every request over a proxy")
}

// waive refuses what is not waived.
func (r *reader) waive(path, rule string, w Waiver, what string) {
	if slices.Contains(r.waived, w) {
		r.used = append(r.used, w)
		return
	}
	r.add(Fault{Path: path, Rule: rule, Message: what, Waiver: w})
}
