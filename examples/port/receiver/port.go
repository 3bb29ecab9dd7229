package receiver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

const (
	// portTime bounds one request to Port: Chandler waits ten seconds for the answer to a webhook.
	portTime = 4 * time.Second
	// maxAnswer bounds what is read of Port's answers.
	maxAnswer = 64 << 10
	// renewBefore is how long before its end a token of Port is not used any more.
	renewBefore = time.Minute
)

// report is what Port is told of a run; without a status the run goes on.
type report struct {
	Status      string `json:"status,omitempty"` // SUCCESS or FAILURE, and nothing follows
	StatusLabel string `json:"statusLabel,omitempty"`
	Summary     string `json:"summary,omitempty"`
	Link        string `json:"link,omitempty"`
}

// portClient tells Port of runs.
type portClient struct {
	api, id, secret string
	http            *http.Client
	now             func() time.Time

	mu    sync.Mutex
	token string
	until time.Time
}

// tell reports a run. What Port refuses, such as a run that has ended, is no error: it would refuse it again.
func (p *portClient) tell(ctx context.Context, run string, what report) (refused string, err error) {
	token, err := p.access(ctx)
	if err != nil {
		return "", err
	}
	status, answer, err := p.send(ctx, http.MethodPatch, "/v1/actions/runs/"+url.PathEscape(run), token, what)
	switch {
	case err != nil:
		return "", err
	case status == http.StatusUnauthorized:
		p.forget(token)
		return "", fmt.Errorf("port takes the token no more")
	case status == http.StatusTooManyRequests || status >= http.StatusInternalServerError:
		return "", fmt.Errorf("port answered with %d", status)
	case status >= http.StatusMultipleChoices:
		return fmt.Sprintf("%d %s", status, answer), nil
	}
	return "", nil
}

// access is a token of Port's, for which the id and the secret of the organization are given.
func (p *portClient) access(ctx context.Context) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now().Before(p.until) {
		return p.token, nil
	}
	status, answer, err := p.send(ctx, http.MethodPost, "/v1/auth/access_token", "",
		map[string]string{"clientId": p.id, "clientSecret": p.secret})
	if err != nil {
		return "", err
	}
	var given struct {
		AccessToken string `json:"accessToken"`
		ExpiresIn   int64  `json:"expiresIn"` // seconds
	}
	if status != http.StatusOK || json.Unmarshal(answer, &given) != nil || given.AccessToken == "" {
		return "", fmt.Errorf("port gave no token for client %s: status %d", p.id, status)
	}
	p.token = given.AccessToken
	p.until = p.now().Add(time.Duration(given.ExpiresIn)*time.Second - renewBefore)
	return p.token, nil
}

func (p *portClient) forget(token string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.token == token {
		p.until = time.Time{}
	}
}

func (p *portClient) send(ctx context.Context, method, path, token string, body any) (int, []byte, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return 0, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, portTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimRight(p.api, "/")+path, bytes.NewReader(raw))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := p.http.Do(req)
	if err != nil {
		return 0, nil, fmt.Errorf("ask Port: %w", err)
	}
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if closing := res.Body.Close(); err == nil {
		err = closing
	}
	return res.StatusCode, answer, err
}
