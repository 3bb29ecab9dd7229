// Package layout reads the two files by which trees of bundle directories say what the bundles do not:
// ci.yaml, which says how the update graph is made (R-CAT-75), and the package manifest of the legacy
// layout, which says what the channels are (R-CAT-76).
package layout

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/chandler-fleet/chandler/libs/catalog/internal/docs"
)

// FileCI stands beside bundle directories and holds what its publisher's pipeline needs.
const FileCI = "ci.yaml"

// MaxBytes is the size of one of these files; real ones have some hundred bytes.
const MaxBytes = 256 << 10

// Mode is how the update graph of bundle directories is made.
type Mode string

// The modes of updateGraph.
const (
	// Replaces takes the edges from the CSVs; it is the mode where none is named.
	Replaces Mode = "replaces-mode"
	// Semver lets each version of a channel replace the next lower one.
	Semver Mode = "semver-mode"
	// SemverSkipPatch is Semver, with older patches of a minor version skipped.
	SemverSkipPatch Mode = "semver-skippatch-mode"
)

// ReadMode reads ci.yaml. An error is one of docs, with the place; the mode is Replaces then.
func ReadMode(data []byte, l docs.Limits) (Mode, *docs.Error) {
	var parser docs.Parser
	root, err := first(&parser, data, l)
	v := root.Child("updateGraph")
	if err != nil || !v.Exists() || string(v.JSON()) == "null" {
		return Replaces, err
	}
	switch m := Mode(v.Text()); m {
	case Replaces, Semver, SemverSkipPatch:
		return m, nil
	default:
		return Replaces, &docs.Error{
			Line: v.Line(), Column: v.Column(),
			Message: fmt.Sprintf("updateGraph %.80s is not known; write %s, %s or %s", v.JSON(), Replaces, Semver,
				SemverSkipPatch),
		}
	}
}

// Package is a package manifest.
type Package struct {
	Name           string `json:"packageName"`
	DefaultChannel string `json:"defaultChannel"`
	Channels       []struct {
		Name       string `json:"name"`
		CurrentCSV string `json:"currentCSV"`
	} `json:"channels"`
	// Line and Column are where it begins.
	Line   int `json:"-"`
	Column int `json:"-"`
}

// Named reports whether a file has the name of a package manifest.
func Named(file string) bool {
	ext := path.Ext(file)
	stem := strings.TrimSuffix(file, ext)
	return (ext == ".yaml" || ext == ".yml" || ext == ".json") &&
		(stem == "package" || strings.HasSuffix(stem, ".package"))
}

// ReadPackage reads a package manifest, nil where the file holds something else or cannot be read: then
// it is read as any other file is.
func ReadPackage(data []byte, l docs.Limits) *Package {
	var parser docs.Parser
	root, err := first(&parser, data, l)
	if err != nil || root.Child("schema").Exists() || !root.Child("packageName").Exists() {
		return nil
	}
	p := Package{Line: root.Line(), Column: root.Column()}
	if json.Unmarshal(root.JSON(), &p) != nil || p.Name == "" || len(p.Channels) == 0 {
		return nil
	}
	return &p
}

var errEnough = errors.New("enough")

// first returns the first document; it is valid as long as the parser reads no other one.
func first(p *docs.Parser, data []byte, l docs.Limits) (docs.Value, *docs.Error) {
	var root docs.Value
	err := docs.Split(bytes.NewReader(data), l, func(c docs.Chunk) error {
		v, perr := p.Parse(c, l)
		if perr != nil {
			return perr
		}
		if faults := p.Faults(); len(faults) > 0 {
			return faults[0]
		}
		if root = v; v.Exists() {
			return errEnough
		}
		return nil
	})
	if err == nil || errors.Is(err, errEnough) {
		return root, nil
	}
	if e, ok := errors.AsType[*docs.Error](err); ok {
		return docs.Value{}, e
	}
	return docs.Value{}, &docs.Error{Line: 1, Column: 1, Message: err.Error()}
}
