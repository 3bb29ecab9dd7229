// Package renewed reads settings again whose files are renewed while a process runs, such as certificates that live for
// some weeks: Kubernetes, cert-manager and others replace the files, and nobody restarts what uses them.
package renewed

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
)

// MaxBytes bounds a file of a setting: people, or tools for certificates, write some KB.
const MaxBytes = 1 << 20

// Setting is a text, and the file that it comes from.
type Setting struct {
	Text string // as it was when settings were read
	File string // which is read again; "" where the text comes from elsewhere and stays
}

// Of is a setting that stays as it is.
func Of(text string) Setting { return Setting{Text: text} }

// Given reports whether there is one.
func (s Setting) Given() bool { return s.Text != "" }

// now is the text of the file now.
func (s Setting) now() (string, error) {
	if s.File == "" {
		return s.Text, nil
	}
	raw, err := Read(s.File)
	return strings.TrimSpace(string(raw)), err
}

// Read reads a file of a setting.
func Read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	var raw bytes.Buffer
	n, err := io.Copy(&raw, io.LimitReader(f, MaxBytes+1))
	if err == nil && n > MaxBytes {
		err = fmt.Errorf("%s is larger than the limit of %d bytes", path, MaxBytes)
	}
	return raw.Bytes(), err
}

// Value is what some settings say together, such as a certificate and its key.
type Value[T any] struct {
	settings []Setting
	parse    func(texts []string) (T, error)
	tell     func(error)

	mu    sync.Mutex
	texts []string // that the value was made from
	value T
	told  string // the last trouble that was told
}

// New makes a value from what the settings say now, or refuses them as parse does. Later trouble is told, once, to
// tell, unless that is nil: the value stays what it was then.
func New[T any](parse func(texts []string) (T, error), tell func(error), settings ...Setting) (*Value[T], error) {
	v := &Value[T]{settings: settings, parse: parse, tell: tell}
	for _, s := range settings {
		v.texts = append(v.texts, s.Text)
	}
	var err error
	v.value, err = parse(v.texts)
	return v, err
}

// Get is the value as the files have it now. While they cannot be read, or do not fit each other, as in the middle of
// being replaced, it is the one before.
func (v *Value[T]) Get() T {
	v.mu.Lock()
	defer v.mu.Unlock()
	texts := make([]string, len(v.settings))
	for i, s := range v.settings {
		var err error
		if texts[i], err = s.now(); err != nil {
			return v.keep(err)
		}
	}
	if slices.Equal(texts, v.texts) {
		v.told = ""
		return v.value
	}
	value, err := v.parse(texts)
	if err != nil {
		return v.keep(err)
	}
	v.texts, v.value, v.told = texts, value, ""
	return value
}

// keep tells why the value stays what it was.
func (v *Value[T]) keep(err error) T {
	if v.told != err.Error() && v.tell != nil {
		v.tell(err)
	}
	v.told = err.Error()
	return v.value
}
