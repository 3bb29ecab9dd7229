package source

// Type names a kind of source.
type Type string

// The kinds of sources. Whatever the kind, libs/catalog reads its content: file-based
// documents, bundle directories, the community layout or package manifests, in any mixture.
const (
	// Directory is a directory that the indexer can read.
	Directory Type = "directory"
	// Archive is a tar, tar.gz or tar.zst file, at a path or a URL.
	Archive Type = "archive"
	// Git is a repository at a reference.
	Git Type = "git"
	// Image is a catalog image in a registry or in an OCI layout on disk.
	Image Type = "image"
	// GRPC is a running catalog server that answers api.Registry.
	GRPC Type = "grpc"
	// ConfigMap is a config map of a cluster, in the form of OLM's first catalogs.
	ConfigMap Type = "configmap"
	// SQLite is an index database in a file.
	SQLite Type = "sqlite"
)

// Modes of taking a catalog with errors in it.
const (
	// Strict keeps the previous revision in service until every error is fixed.
	Strict = "strict"
	// Lenient quarantines the packages with errors and serves the others.
	Lenient = "lenient"
)

// Settings are the body of kind "catalog-source" in the gateway's erasable store: all that the indexer
// needs beside the type. Which fields have a meaning depends on the type; see Check.
type Settings struct {
	// directory, archive, sqlite; image: of an OCI layout on disk
	Path         string `json:"path,omitempty"`
	URL          string `json:"url,omitempty"`          // archive, git
	Reference    string `json:"reference,omitempty"`    // git: branch, tag or commit; "" is the remote's HEAD
	Subdirectory string `json:"subdirectory,omitempty"` // archive, git, image: where the catalog lies inside
	Image        string `json:"image,omitempty"`        // image: pull specification, by tag or digest
	// image: reference with variables, goes before Image (R-CAT-92)
	Template  string        `json:"template,omitempty"`
	Address   string        `json:"address,omitempty"`   // grpc: host:port
	ConfigMap *ConfigMapRef `json:"configMap,omitempty"` // configmap
	// Secrets name the credentials (R-DIS-4); several docker configurations are merged (R-DIS-5).
	Secrets []string `json:"secrets,omitempty"`
	// Insecure allows a registry or server without TLS. CA certificates come from secrets of kind ca.
	Insecure bool `json:"insecure,omitempty"`
	// Mirrors go before those of the indexer's own configuration.
	Mirrors []Mirror `json:"mirrors,omitempty"`
	// Poll is how often the source is polled, as a Go duration; "" is the indexer's default,
	// "0s" never. Timeout bounds one poll.
	Poll    string `json:"poll,omitempty"`
	Timeout string `json:"timeout,omitempty"`
	// Prefetch fetches every bundle image that the catalog names, at once instead of when needed.
	Prefetch bool `json:"prefetch,omitempty"`
	// Mode is Strict (the default) or Lenient.
	Mode string `json:"mode,omitempty"`
	// Signatures say whose signature images must bear; nil asks for none.
	Signatures *SignaturePolicy `json:"signatures,omitempty"`
	// Display is shown in lists and on screen (R-CAT-84).
	Display *Display `json:"display,omitempty"`
}

// ConfigMapRef names a config map; the kubeconfig for its cluster is the secret of kind kubeconfig.
type ConfigMapRef struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// Mirror maps references that begin with Source, at a "/" , ":" or "@", to each of Mirrors in turn.
// Where none answers, the source itself is asked unless Never is set, for a site that is cut off.
type Mirror struct {
	Source  string   `json:"source"`
	Mirrors []string `json:"mirrors"`
	Never   bool     `json:"neverContactSource,omitempty"`
}

// Display is what people see of a catalog.
type Display struct {
	Name        string `json:"name,omitempty"`
	Publisher   string `json:"publisher,omitempty"`
	Description string `json:"description,omitempty"`
	Icon        *Icon  `json:"icon,omitempty"`
}

// Icon is a picture.
type Icon struct {
	Data      []byte `json:"base64data"`
	MediaType string `json:"mediatype"`
}

// SecretKind says what a credential is made of.
type SecretKind string

// The kinds of credentials for catalog sources. A value is a JSON object of the fields named here.
const (
	DockerConfig SecretKind = "dockerconfigjson" // a docker configuration file as it is, {"auths": …}
	Basic        SecretKind = "basic"            // username, password: git and archives over HTTPS
	Token        SecretKind = "token"            // token: bearer for git, archives and gRPC
	SSH          SecretKind = "ssh"              // privateKey, knownHosts, passphrase: git over SSH
	CA           SecretKind = "ca"               // certificates: PEM, beside those of the system
	Kubeconfig   SecretKind = "kubeconfig"       // kubeconfig: for a config map
)

// Secret is a credential, decrypted. It is never logged and never part of an error.
type Secret struct {
	Name  string
	Kind  SecretKind
	Value []byte
}
