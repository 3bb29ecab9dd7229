package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"
)

// problemType is the media type of problems.
const problemType = "application/problem+json"

// Error is one sentence: what is wrong, where, and the rule that says so. It may quote what others wrote; who shows it
// on a terminal takes control characters out.
func (p *Problem) Error() string {
	var parts []string
	for _, e := range p.Errors {
		parts = append(parts, e.String())
	}
	detail := p.Detail
	if detail == "" {
		detail = p.Title
	}
	switch {
	case len(parts) == 1 && strings.Contains(detail, p.Errors[0].Message):
		e := p.Errors[0]
		if strings.Contains(detail, e.Location) {
			e.Location = ""
		}
		return detail + e.place()
	case len(parts) > 0:
		return detail + ": " + strings.Join(parts, "; ")
	case p.Status >= http.StatusInternalServerError && p.Request != "":
		return detail + " (request " + p.Request + ")"
	default:
		return detail
	}
}

// String is what is wrong in one place.
func (e ProblemItem) String() string { return e.Message + e.place() }

func (e ProblemItem) place() string {
	var parts []string
	if e.Location != "" {
		parts = append(parts, "at "+e.Location)
	}
	if e.Rule != "" {
		parts = append(parts, "rule "+e.Rule)
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// IsStatus reports whether err is an answer with this HTTP status.
func IsStatus(err error, status int) bool {
	p, ok := errors.AsType[*Problem](err)
	return ok && p.Status == int64(status)
}

// problemOf makes a problem of what was answered. Only the API writes problems; what stands between may answer
// anything.
func problemOf(res *http.Response, raw []byte) error {
	p := &Problem{}
	media, _, _ := mime.ParseMediaType(res.Header.Get(headerContentType))
	if media != problemType || json.Unmarshal(raw, p) != nil || p.Title == "" {
		p = &Problem{Type: "about:blank", Title: fmt.Sprintf("%s answered %s", res.Request.URL.Host, res.Status)}
		if to := res.Header.Get("Location"); to != "" {
			p.Title += fmt.Sprintf(" to %q, which is not followed: give the address of Chandler itself", to)
		}
	}
	p.Status = int64(res.StatusCode)
	return p
}
