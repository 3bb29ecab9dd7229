package keys

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"filippo.io/age"

	"github.com/chandler-fleet/chandler/libs/bodies"
	"github.com/chandler-fleet/chandler/libs/keys"
	"github.com/chandler-fleet/chandler/libs/keys/ageplugin"
	"github.com/chandler-fleet/chandler/libs/keys/seal"
	"github.com/chandler-fleet/chandler/libs/keys/sshagent"
	"github.com/chandler-fleet/chandler/services/gateway/cataloghook"
)

// Purpose is what a set of keys is for, as the API names it.
type Purpose string

// Purposes of keys that can be rotated.
const (
	Grant              Purpose = "grant"
	Credentials        Purpose = "credentials"
	CatalogCredentials Purpose = "catalog-credentials"
	Hook               Purpose = "hook"
	Configuration      Purpose = "configuration"
	Source             Purpose = "source"
	Annotation         Purpose = "annotation"
	Reason             Purpose = "reason"
)

// Purposes are all of them.
func Purposes() []Purpose {
	return []Purpose{Grant, Credentials, CatalogCredentials, Hook, Configuration, Source, Annotation, Reason}
}

// settings are the variables of a purpose: the set itself, and the public half of the active key.
var settings = map[Purpose]struct{ set, public string }{ //nolint:gochecknoglobals // a table
	Grant:              {"CHANDLER_GRANT_KEY", ""},
	Credentials:        {"CHANDLER_CREDENTIALS_IDENTITY", "CHANDLER_CREDENTIALS_RECIPIENT"},
	CatalogCredentials: {"CHANDLER_CATALOG_CREDENTIALS_IDENTITY", "CHANDLER_CATALOG_CREDENTIALS_RECIPIENT"},
	Hook:               {"CHANDLER_HOOK_KEY", ""},
	Configuration:      {bodies.Configuration.Variable(), ""},
	Source:             {bodies.Source.Variable(), ""},
	Annotation:         {bodies.Annotations.Variable(), ""},
	Reason:             {bodies.Reason.Variable(), ""},
}

// Entry is one key of a file, without its secret.
type Entry struct {
	Purpose Purpose `json:"purpose"`
	Key     string  `json:"key"`
	Active  bool    `json:"active"`
}

// File is an environment file with the keys of an installation, as Variables writes it. All else in it stays as it is.
type File struct{ lines [][]byte }

// ParseFile reads a file. One that sets keys twice is refused: whoever reads it takes the last line, so that a key that
// was put into another one is not there for the services, and what is retired there stays accepted.
func ParseFile(raw []byte) (*File, error) {
	f := &File{lines: bytes.Split(raw, []byte("\n"))}
	at := map[string][]string{}
	for i, l := range f.lines {
		if name, _, ok := assignment(l); ok {
			at[name] = append(at[name], strconv.Itoa(i+1))
		}
	}
	for _, p := range Purposes() {
		for _, name := range []string{settings[p].set, settings[p].public} {
			if lines := at[name]; len(lines) > 1 {
				return nil, fmt.Errorf("%s is set on lines %s of the file: keep one of them, the last is what counts", name,
					strings.Join(lines, ", "))
			}
		}
	}
	return f, nil
}

// assignment splits a line that sets a variable into its name and value, both trimmed of what shells and docker compose
// overlook.
func assignment(line []byte) (name, value string, ok bool) {
	left, right, ok := strings.Cut(string(line), "=")
	name = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(left), "export "))
	return name, strings.Trim(strings.TrimSpace(right), `"'`), ok && !strings.HasPrefix(name, "#")
}

// Bytes is the file.
func (f *File) Bytes() []byte { return bytes.Join(f.lines, []byte("\n")) }

func (f *File) find(name string) (at int, value string) {
	for i, l := range f.lines {
		if n, v, ok := assignment(l); ok && n == name {
			return i, v
		}
	}
	return -1, ""
}

// put sets a variable, in its place or at the end.
func (f *File) put(name, value string) {
	if at, _ := f.find(name); at >= 0 {
		left, _, _ := bytes.Cut(f.lines[at], []byte("="))
		f.lines[at] = fmt.Appendf(nil, "%s=%s", left, value)
		return
	}
	line := []byte(name + "=" + value)
	end := len(f.lines)
	if end > 0 && len(f.lines[end-1]) == 0 {
		end--
	}
	f.lines = slices.Insert(f.lines, end, line)
}

// set is a set of keys as its setting has it, with ids.
func (f *File) set(p Purpose) (entries, ids []string, err error) {
	s, ok := settings[p]
	if !ok {
		return nil, nil, fmt.Errorf("%q is no purpose of keys: want one of %v", p, Purposes())
	}
	_, value := f.find(s.set)
	entries = keys.Entries(value)
	for i, e := range entries {
		id, err := idOf(p, e)
		if err != nil {
			return nil, nil, fmt.Errorf("%s, key %d of %d: %w", s.set, i+1, len(entries), err)
		}
		ids = append(ids, id)
	}
	return entries, ids, nil
}

// idOf is the id of one key of a setting.
func idOf(p Purpose, entry string) (string, error) {
	switch p {
	case Grant:
		set, err := keys.ParseSigning(entry, sshagent.Open(""))
		if public, ok := strings.CutPrefix(entry, "public:"); ok {
			raw, err := base64.StdEncoding.DecodeString(public)
			return keys.IDOf(keys.KindSign, raw).String(), err
		}
		if err != nil {
			return "", err
		}
		return set.ActiveID().String(), nil
	case Hook:
		list, err := cataloghook.ParseKeys(entry)
		return list.ActiveID(), err
	case Configuration, Source, Annotation, Reason:
		ids, err := bodies.ParseKeys(kindOf(p), entry)
		return strings.Join(ids, ","), err
	case Credentials, CatalogCredentials: // identities of age
	}
	set, err := seal.ParseIdentities(entry, ageplugin.Open)
	return set.Active().ID.String(), err
}

// kindOf is the kind of bodies that keys of a purpose seal.
func kindOf(p Purpose) bodies.Kind {
	for _, k := range bodies.Kinds() {
		if k.Purpose() == string(p) {
			return k
		}
	}
	return ""
}

// List are the keys of the file by purpose, the active one of each first.
func (f *File) List() (list []Entry, err error) {
	for _, p := range Purposes() {
		_, ids, err := f.set(p)
		if err != nil {
			return nil, err
		}
		for i, id := range ids {
			list = append(list, Entry{Purpose: p, Key: id, Active: i == 0})
		}
	}
	return list, nil
}

// Add makes a key and puts it behind the others: it is accepted, and nothing is made with it yet. Where there is none
// it is active at once.
func (f *File) Add(p Purpose) (id string, err error) {
	entries, _, err := f.set(p)
	if err != nil {
		return "", err
	}
	entry, err := makeEntry(p)
	if err != nil {
		return "", err
	}
	f.save(p, append(entries, entry))
	return idOf(p, entry)
}

func makeEntry(p Purpose) (string, error) {
	switch p {
	case Grant:
		seed := make([]byte, ed25519.SeedSize)
		_, err := rand.Read(seed)
		return base64.StdEncoding.EncodeToString(seed), err
	case Hook, Configuration, Source, Annotation, Reason:
		return rand.Text() + rand.Text(), nil
	case Credentials, CatalogCredentials: // identities of age
	}
	id, err := age.GenerateX25519Identity()
	if err != nil {
		return "", err
	}
	return id.String(), nil
}

// Activate puts a key in front of the others: new things are made with it.
func (f *File) Activate(p Purpose, id string) error {
	entries, at, err := f.place(p, id)
	if err != nil {
		return err
	}
	one := entries[at]
	if p == Grant && strings.HasPrefix(one, "public:") {
		return fmt.Errorf("of key %s of %s only the public half is there: it cannot sign", id, p)
	}
	f.save(p, append([]string{one}, slices.Delete(slices.Clone(entries), at, at+1)...))
	return nil
}

// Retire takes a key out that is not active.
func (f *File) Retire(p Purpose, id string) error {
	entries, at, err := f.place(p, id)
	if err != nil {
		return err
	}
	if at == 0 {
		return fmt.Errorf("key %s of %s is active: activate another one first", id, p)
	}
	f.save(p, slices.Delete(slices.Clone(entries), at, at+1))
	return nil
}

func (f *File) place(p Purpose, id string) (entries []string, at int, err error) {
	entries, ids, err := f.set(p)
	if err != nil {
		return nil, 0, err
	}
	if at = slices.Index(ids, id); at < 0 {
		return nil, 0, fmt.Errorf("no key %s of %s is in this file: there are %s", id, p, strings.Join(ids, ", "))
	}
	return entries, at, nil
}

// save writes the set, and the public half of its active key for the service that only encrypts.
func (f *File) save(p Purpose, entries []string) {
	s := settings[p]
	f.put(s.set, strings.Join(entries, ","))
	if s.public == "" {
		return
	}
	if set, err := seal.ParseIdentities(entries[0], ageplugin.Open); err == nil {
		f.put(s.public, set.Active().String())
	}
}
