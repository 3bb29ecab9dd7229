package store

import (
	"bytes"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
)

// maxKeyText bounds a text of others that is part of a key: Postgres takes at most 2,704 bytes for a row of
// an index, and three such texts are in one.
const maxKeyText = 600

// replacement replaces what Postgres does not take in text: NUL, and bytes that are no UTF-8.
const replacement = "\ufffd"

// Storable is a text for a column. Catalogs are made by others, and one with such a name must not hold up
// anything.
func Storable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, replacement), "\x00", replacement)
}

// storableKey is a text for a column that is part of a key. One that is too long keeps its beginning, and a
// digest of the whole keeps it apart from others.
func storableKey(s string) string {
	s = Storable(s)
	if len(s) <= maxKeyText {
		return s
	}
	end := "…" + digest.Bytes([]byte(s)).Hex()
	at := maxKeyText - len(end)
	for !utf8.RuneStart(s[at]) {
		at--
	}
	return s[:at] + end
}

// storableList is Storable of each; nil becomes an empty list, which Postgres takes for one.
func storableList(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = Storable(s)
	}
	return out
}

// storableJSON is a text of json.Marshal for a jsonb column, which takes no NUL. Invalid UTF-8 json.Marshal has
// replaced already.
func storableJSON(raw []byte) []byte {
	nul := []byte(`\u0000`)
	if !bytes.Contains(raw, nul) {
		return raw
	}
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		switch {
		case raw[i] != '\\':
			out = append(out, raw[i])
		case bytes.HasPrefix(raw[i:], nul):
			out = append(out, replacement...)
			i += len(nul) - 1
		default: // an escape of two bytes at least: the second may be a backslash itself
			out = append(out, raw[i], raw[i+1])
			i++
		}
	}
	return out
}

// Unstorable says whether an outcome was refused because of what is in it, so that it would be refused at
// every further attempt: a text that Postgres does not take, a key or an event that is too long.
func Unstorable(err error) bool {
	if p, is := errors.AsType[*pgconn.PgError](err); is {
		class := p.Code[:min(2, len(p.Code))]
		return class == "22" || class == "54" // data exceptions, limits of the program
	}
	return errs.Is(err, errs.TooLarge)
}
