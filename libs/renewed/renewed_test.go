package renewed_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/renewed"
)

var errApart = errors.New("they do not fit each other")

// pair wants two texts that begin with the same letter.
func pair(texts []string) (string, error) {
	if texts[0] == "" || texts[1] == "" || texts[0][0] != texts[1][0] {
		return "", errApart
	}
	return strings.Join(texts, " "), nil
}

// A value follows its files. While one of two is replaced, missing or too long it stays, and that is told once.
func TestValue(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a", "a1\n")
	write("b", "a2\n")
	var told []error
	v, err := renewed.New(pair, func(err error) { told = append(told, err) },
		renewed.Setting{Text: "a1", File: filepath.Join(dir, "a")},
		renewed.Setting{Text: "a2", File: filepath.Join(dir, "b")})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		name string
		do   func()
		want string
		told int // in all
	}{
		{"unchanged", func() {}, "a1 a2", 0},
		{"one of two is replaced", func() { write("a", "b1") }, "a1 a2", 1},
		{"asked again", func() {}, "a1 a2", 1},
		{"both are replaced", func() { write("b", "b2") }, "b1 b2", 1},
		{"one is gone", func() {
			if err := os.Remove(filepath.Join(dir, "a")); err != nil {
				t.Fatal(err)
			}
		}, "b1 b2", 2},
		{"it is there again", func() { write("a", "b3") }, "b3 b2", 2},
		{"one is too long", func() { write("a", "b"+strings.Repeat("x", renewed.MaxBytes)) }, "b3 b2", 3},
	} {
		step.do()
		if got := v.Get(); got != step.want || len(told) != step.told {
			t.Errorf("%s: %.20q, told %v", step.name, got, told)
		}
	}
}

// Settings without a file stay, and what cannot be used at the start is refused.
func TestOf(t *testing.T) {
	t.Parallel()
	v, err := renewed.New(pair, nil, renewed.Of("a"), renewed.Of("ab"))
	if err != nil || v.Get() != "a ab" {
		t.Errorf("%q, %v", v.Get(), err)
	}
	if _, err := renewed.New(pair, nil, renewed.Of("a"), renewed.Of("b")); !errors.Is(err, errApart) {
		t.Errorf("not refused: %v", err)
	}
}
