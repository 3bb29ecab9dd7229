package jsontree

import "bytes"

// Scan calls each for the keys and values of one object in canonical form, without looking into the values
// more than it must. It ends early where each returns false. It returns false where the text is no object,
// or not canonical, as far as it looked; then what each was given may mean anything.
func Scan(canonical []byte, each func(key, value []byte) bool) bool {
	s := scanner{b: canonical}
	if !s.take('{') {
		return false
	}
	if s.take('}') {
		return s.i == len(s.b)
	}
	for {
		key, ok := s.str()
		if !ok || !s.take(':') {
			return false
		}
		from := s.i
		if !s.skip() || s.i == from {
			return false
		}
		if !each(key, s.b[from:s.i:s.i]) {
			return true
		}
		if s.take('}') {
			return s.i == len(s.b)
		}
		if !s.take(',') {
			return false
		}
	}
}

// ScanList is Scan for the elements of an array.
func ScanList(canonical []byte, each func(value []byte) bool) bool {
	s := scanner{b: canonical}
	if !s.take('[') {
		return false
	}
	if s.take(']') {
		return s.i == len(s.b)
	}
	for {
		from := s.i
		if !s.skip() || s.i == from {
			return false
		}
		if !each(s.b[from:s.i:s.i]) {
			return true
		}
		if s.take(']') {
			return s.i == len(s.b)
		}
		if !s.take(',') {
			return false
		}
	}
}

// Unquote returns the content of a string in canonical form; ok is false for anything else.
func Unquote(value []byte) (text string, ok bool) {
	if len(value) < 2 || value[0] != '"' {
		return "", false
	}
	return unquote(value), true
}

// scanner goes over canonical JSON.
type scanner struct {
	b []byte
	i int
}

func (s *scanner) take(c byte) bool {
	if s.i >= len(s.b) || s.b[s.i] != c {
		return false
	}
	s.i++
	return true
}

// str returns what stands between the quotes of a string.
func (s *scanner) str() ([]byte, bool) {
	if !s.take('"') {
		return nil, false
	}
	from := s.i
	for {
		n := bytes.IndexByte(s.b[s.i:], '"')
		if n < 0 {
			return nil, false
		}
		s.i += n + 1
		escapes := s.i - 2
		for escapes >= from && s.b[escapes] == '\\' {
			escapes--
		}
		if (s.i-2-escapes)%2 == 0 {
			return s.b[from : s.i-1], true
		}
	}
}

// skip goes over a value.
func (s *scanner) skip() bool {
	depth := 0
	for s.i < len(s.b) {
		switch c := s.b[s.i]; c {
		case '"':
			if _, ok := s.str(); !ok {
				return false
			}
		case '{', '[':
			depth++
			s.i++
			continue
		case '}', ']', ',':
			if depth == 0 {
				return true // behind a number or a word
			}
			s.i++
			if c == ',' {
				continue
			}
			depth--
		default:
			s.i++
			continue
		}
		if depth == 0 {
			return true
		}
	}
	return depth == 0
}
