package olm

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// annotationPriority says how a catalog's pod runs in a cluster (R-CAT-89).
const annotationPriority = "operatorframework.io/priorityclass"

// catalogSpec is R-CAT §1.11. The source types beside grpc, configmap and internal, with the fields from
// Path on, are Chandler's own.
type catalogSpec struct {
	SourceType     string     `json:"sourceType"`
	Image          string     `json:"image"`
	Address        string     `json:"address"`
	ConfigMap      string     `json:"configMap"`
	Priority       int32      `json:"priority"`
	Secrets        []string   `json:"secrets"`
	DisplayName    string     `json:"displayName"`
	Description    string     `json:"description"`
	Publisher      string     `json:"publisher"`
	Icon           icon       `json:"icon"`
	UpdateStrategy strategy   `json:"updateStrategy"`
	GRPCPodConfig  *podConfig `json:"grpcPodConfig"`
	RunAsRoot      bool       `json:"runAsRoot"`

	Path         string `json:"path"`
	URL          string `json:"url"`
	Reference    string `json:"reference"`
	Subdirectory string `json:"subdirectory"`
}

type icon struct {
	Data      []byte `json:"base64data"`
	MediaType string `json:"mediatype"`
}

type strategy struct {
	RegistryPoll struct {
		Interval string `json:"interval"`
	} `json:"registryPoll"`
}

// podConfig says how a catalog's pod runs in a cluster. The content's place in the image is all of it that
// means something where none runs.
type podConfig struct {
	NodeSelector          json.RawMessage `json:"nodeSelector"`
	Tolerations           json.RawMessage `json:"tolerations"`
	Affinity              json.RawMessage `json:"affinity"`
	PriorityClassName     json.RawMessage `json:"priorityClassName"`
	SecurityContextConfig json.RawMessage `json:"securityContextConfig"`
	MemoryTarget          json.RawMessage `json:"memoryTarget"`
	ExtractContent        *struct {
		CacheDir   string `json:"cacheDir"`
		CatalogDir string `json:"catalogDir"`
	} `json:"extractContent"`
}

// readCatalog reads a CatalogSource (R-CAT-84). What only says how a pod runs is noted and has no effect:
// the indexer reads catalogs itself.
func (d *Document) readCatalog(raw json.RawMessage, annotations map[string]string) error {
	var s catalogSpec
	if err := strict(raw, &s); err != nil {
		return err
	}
	in, err := s.source(d.Namespace, annotations[model.AnnotationTemplate])
	if err != nil {
		return err
	}
	in.Secrets, in.Poll = s.Secrets, s.UpdateStrategy.RegistryPoll.Interval
	c := &Catalog{Source: in, Priority: s.Priority}
	if s.DisplayName != "" || s.Description != "" || s.Publisher != "" || len(s.Icon.Data) > 0 {
		c.Display = &model.CatalogDisplay{Name: s.DisplayName, Publisher: s.Publisher, Description: s.Description}
		if len(s.Icon.Data) > 0 {
			c.Display.Icon = &model.CatalogIcon{Data: s.Icon.Data, MediaType: s.Icon.MediaType}
		}
	}
	d.Catalog = c
	d.Notes = s.notes(annotations)
	return nil
}

// source decides the type:
//
//  1. grpc with image, or with the template annotation, is a catalog image (an address beside it is ignored,
//     as OLM does);
//  2. grpc with an address alone is a running catalog server;
//  3. configmap and its old name internal are a config map of the document's namespace;
//  4. the other types are Chandler's own and go by their own fields.
func (s catalogSpec) source(namespace, template string) (model.CatalogSource, error) {
	switch strings.ToLower(s.SourceType) {
	case "grpc":
		if s.Image == "" && template == "" {
			if s.Address == "" {
				return model.CatalogSource{}, fmt.Errorf(
					"spec.image, spec.address or the annotation %s is required with sourceType grpc (R-CAT-84)",
					model.AnnotationTemplate)
			}
			return model.CatalogSource{Type: source.GRPC, Address: s.Address},
				s.without("path", "url", "reference", "subdirectory", "configMap")
		}
		in := model.CatalogSource{Type: source.Image, Image: s.Image, Template: template}
		if s.GRPCPodConfig != nil && s.GRPCPodConfig.ExtractContent != nil {
			in.Subdirectory = strings.Trim(s.GRPCPodConfig.ExtractContent.CatalogDir, "/")
		}
		return in, s.without("path", "url", "reference", "subdirectory", "configMap")
	case "configmap", "internal":
		if s.ConfigMap == "" {
			return model.CatalogSource{}, fmt.Errorf("spec.configMap is required with sourceType %s (R-CAT-84)",
				s.SourceType)
		}
		return model.CatalogSource{
				Type:      source.ConfigMap,
				ConfigMap: &model.CatalogConfigMap{Namespace: namespace, Name: s.ConfigMap},
			},
			s.without("path", "url", "reference", "subdirectory", "image", "address")
	case string(source.Directory), string(source.Archive), string(source.Git), string(source.SQLite),
		string(source.Image):
		return s.own()
	default:
		return model.CatalogSource{}, fmt.Errorf(
			"spec.sourceType %q is not known: want grpc, configmap or internal, or Chandler's own archive, "+
				"directory, git, image or sqlite", s.SourceType)
	}
}

// own reads one of Chandler's own types, whose fields are checked by libs/source as everywhere.
func (s catalogSpec) own() (model.CatalogSource, error) {
	in := model.CatalogSource{
		Type: source.Type(strings.ToLower(s.SourceType)), Path: s.Path, URL: s.URL, Reference: s.Reference,
		Subdirectory: s.Subdirectory, Image: s.Image,
	}
	if err := s.without("address", "configMap"); err != nil {
		return in, err
	}
	var wrong []string
	for _, v := range source.Check(in.Type, in.Settings(nil)) {
		wrong = append(wrong, "spec"+strings.ReplaceAll(v.Field, "/", ".")+": "+v.Message)
	}
	if len(wrong) > 0 {
		return in, fmt.Errorf("%s", strings.Join(wrong, "; "))
	}
	return in, nil
}

// without refuses fields that do not go with the source type.
func (s catalogSpec) without(names ...string) error {
	given := map[string]bool{
		"path": s.Path != "", "url": s.URL != "", "reference": s.Reference != "", "subdirectory": s.Subdirectory != "",
		"image": s.Image != "", "address": s.Address != "", "configMap": s.ConfigMap != "",
	}
	for _, name := range names {
		if given[name] {
			return fmt.Errorf("spec.%s does not go with sourceType %s", name, s.SourceType)
		}
	}
	return nil
}

// notes name what is accepted and has no effect.
func (s catalogSpec) notes(annotations map[string]string) []string {
	idle := map[string]bool{"spec.runAsRoot": s.RunAsRoot, "the annotation " +
		annotationPriority: annotations[annotationPriority] != ""}
	if p := s.GRPCPodConfig; p != nil {
		for name, raw := range map[string]json.RawMessage{
			"nodeSelector": p.NodeSelector, "tolerations": p.Tolerations, "affinity": p.Affinity,
			"priorityClassName": p.PriorityClassName, "securityContextConfig": p.SecurityContextConfig,
			"memoryTarget": p.MemoryTarget,
		} {
			idle["spec.grpcPodConfig."+name] = len(raw) > 0
		}
		idle["spec.grpcPodConfig.extractContent.cacheDir"] = p.ExtractContent != nil && p.ExtractContent.CacheDir != ""
	}
	maps.DeleteFunc(idle, func(_ string, given bool) bool { return !given })
	var notes []string
	if len(idle) > 0 {
		notes = append(notes, strings.Join(slices.Sorted(maps.Keys(idle)), ", ")+
			" has no effect: no pod runs for a catalog, the indexer reads it itself")
	}
	if s.Image != "" && s.Address != "" {
		notes = append(notes, "spec.address is ignored, since spec.image is set")
	}
	return notes
}

// hubSpec is OperatorHub's (R-CFG-10).
type hubSpec struct {
	DisableAllDefaultSources bool `json:"disableAllDefaultSources"`
	Sources                  []struct {
		Name     string `json:"name"`
		Disabled bool   `json:"disabled"`
	} `json:"sources"`
}

func (d *Document) readHub(raw json.RawMessage) error {
	var s hubSpec
	if err := strict(raw, &s); err != nil {
		return err
	}
	if d.Name != hubName {
		return fmt.Errorf("an OperatorHub is named %s", hubName)
	}
	d.Hub = &model.SetOperatorHub{DisableAllDefaultSources: s.DisableAllDefaultSources}
	for _, x := range s.Sources {
		d.Hub.Sources = append(d.Hub.Sources, model.HubSource{Name: x.Name, Disabled: x.Disabled})
	}
	return nil
}
