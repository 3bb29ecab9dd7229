package model

import "github.com/chandler-fleet/chandler/libs/source"

// CatalogSource says where a catalog's content comes from (R-CAT-84). Which fields belong to which type is
// libs/source's to say; what does not belong is refused by name.
type CatalogSource struct {
	Type         source.Type        `json:"type" enum:"directory,archive,git,image,grpc,configmap,sqlite" doc:"directory: that the indexer can read; archive: tar, tar.gz or tar.zst at a path or URL; git: a repository; image: a catalog image; grpc: a running catalog server; configmap: of a cluster; sqlite: an index database"`
	Path         string             `json:"path,omitempty" maxLength:"4096" doc:"directory, archive, sqlite; image: of an OCI layout on disk. As the indexer sees it; a relative one starts in its catalog-root"`
	URL          string             `json:"url,omitempty" maxLength:"4096" doc:"archive, git"`
	Reference    string             `json:"reference,omitempty" maxLength:"1024" doc:"git: branch, tag or commit; the remote's HEAD without it"`
	Subdirectory string             `json:"subdirectory,omitempty" maxLength:"4096" doc:"archive, git, image: where the catalog lies inside"`
	Image        string             `json:"image,omitempty" maxLength:"1024" doc:"image: pull specification by tag or digest"`
	Template     string             `json:"template,omitempty" maxLength:"1024" doc:"image: reference with {kube_major_version}, {kube_minor_version} or {kube_patch_version}; goes before image where it resolves"`
	Address      string             `json:"address,omitempty" maxLength:"512" doc:"grpc: host:port"`
	ConfigMap    *CatalogConfigMap  `json:"configMap,omitempty" doc:"configmap: the kubeconfig of its cluster is a secret of kind kubeconfig"`
	Secrets      []string           `json:"secrets,omitempty" maxItems:"32" doc:"Names of catalog secrets; several docker configurations are merged"`
	Insecure     bool               `json:"insecure,omitempty" doc:"Allow a registry or server without TLS"`
	Mirrors      []CatalogMirror    `json:"mirrors,omitempty" maxItems:"64" doc:"Go before those of the indexer's own configuration"`
	Poll         string             `json:"poll,omitempty" maxLength:"64" doc:"How often to poll, such as 30m; the indexer's default without it, 0s for never. One that cannot be read is taken as 15m and reported."`
	Timeout      string             `json:"timeout,omitempty" maxLength:"64" doc:"Timeout of one poll, such as 10m"`
	Prefetch     bool               `json:"prefetch,omitempty" doc:"Fetch every bundle image that the catalog names at once, instead of when it is needed"`
	Mode         string             `json:"mode,omitempty" enum:"strict,lenient" doc:"strict, also without it: one error keeps the revision before in service; lenient: sick packages are left out and named"`
	Signatures   *CatalogSignatures `json:"signatures,omitempty" doc:"image: whose signature the catalog image and its bundle images must bear"`
}

// CatalogConfigMap names a config map.
type CatalogConfigMap struct {
	Namespace string `json:"namespace" maxLength:"63"`
	Name      string `json:"name" maxLength:"253"`
}

// CatalogMirror maps references that begin with Source to each of Mirrors in turn.
type CatalogMirror struct {
	Source  string   `json:"source" maxLength:"512" example:"registry.example.test/team"`
	Mirrors []string `json:"mirrors" maxItems:"16"`
	Never   bool     `json:"neverContactSource,omitempty" doc:"Where no mirror answers, do not ask the source itself: for a site that is cut off"`
}

// CatalogDisplay is what people see of a catalog.
type CatalogDisplay struct {
	Name        string       `json:"name,omitempty" maxLength:"256"`
	Publisher   string       `json:"publisher,omitempty" maxLength:"256"`
	Description string       `json:"description,omitempty" maxLength:"16384"`
	Icon        *CatalogIcon `json:"icon,omitempty"`
}

// CatalogIcon is the picture of a catalog.
type CatalogIcon struct {
	Data      []byte `json:"base64data"`
	MediaType string `json:"mediatype"`
}

// Settings are the source and what people see in the form that the indexer reads.
func (s CatalogSource) Settings(d *CatalogDisplay) source.Settings {
	out := source.Settings{
		Path: s.Path, URL: s.URL, Reference: s.Reference, Subdirectory: s.Subdirectory, Image: s.Image,
		Template: s.Template, Address: s.Address, ConfigMap: (*source.ConfigMapRef)(s.ConfigMap), Secrets: s.Secrets,
		Insecure: s.Insecure, Poll: s.Poll, Timeout: s.Timeout, Prefetch: s.Prefetch, Mode: s.Mode,
		Signatures: s.Signatures.policy(),
	}
	for _, m := range s.Mirrors {
		out.Mirrors = append(out.Mirrors, source.Mirror(m))
	}
	if d != nil && (d.Name != "" || d.Publisher != "" || d.Description != "" || d.Icon != nil) {
		out.Display = &source.Display{
			Name: d.Name, Publisher: d.Publisher, Description: d.Description,
			Icon: (*source.Icon)(d.Icon),
		}
	}
	return out
}

// SourceOf is the way back from Settings.
func SourceOf(t source.Type, s source.Settings) (CatalogSource, *CatalogDisplay) {
	out := CatalogSource{
		Type: t, Path: s.Path, URL: s.URL, Reference: s.Reference, Subdirectory: s.Subdirectory, Image: s.Image,
		Template: s.Template, Address: s.Address, ConfigMap: (*CatalogConfigMap)(s.ConfigMap), Secrets: s.Secrets,
		Insecure: s.Insecure, Poll: s.Poll, Timeout: s.Timeout, Prefetch: s.Prefetch, Mode: s.Mode,
		Signatures: signaturesOf(s.Signatures),
	}
	for _, m := range s.Mirrors {
		out.Mirrors = append(out.Mirrors, CatalogMirror(m))
	}
	if s.Display == nil {
		return out, nil
	}
	return out, &CatalogDisplay{
		Name: s.Display.Name, Publisher: s.Display.Publisher, Description: s.Display.Description,
		Icon: (*CatalogIcon)(s.Display.Icon),
	}
}
