package signin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientauth "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	clientcmd "k8s.io/client-go/tools/clientcmd/api/v1"
)

// ExecVersion is the version of the protocol of programs that give credentials.
const ExecVersion = "client.authentication.k8s.io/v1"

// execTimeout bounds how long a program may take that a person has to answer.
const execTimeout = loginTimeout

// maxExecAnswer bounds what a program answers: a token is a few kilobytes.
const maxExecAnswer = 1 << 20

// Exec gets a token of a program, by the protocol of kubeconfig's exec: it writes an ExecCredential of
// client.authentication.k8s.io/v1 to its standard output.
func Exec(ctx context.Context, with clientcmd.ExecConfig, person bool, stderr io.Writer, now func() time.Time) (
	string, error,
) {
	ask := clientauth.ExecCredential{
		TypeMeta: metav1.TypeMeta{APIVersion: ExecVersion, Kind: "ExecCredential"},
		Spec:     clientauth.ExecCredentialSpec{Interactive: person},
	}
	info, err := json.Marshal(ask)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, execTimeout)
	defer cancel()
	c := exec.CommandContext(ctx, with.Command, with.Args...)
	c.Env = append(os.Environ(), "KUBERNETES_EXEC_INFO="+string(info))
	for _, v := range with.Env {
		c.Env = append(c.Env, v.Name+"="+v.Value)
	}
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, stderr
	if person {
		c.Stdin = os.Stdin
	}
	if err := c.Run(); err != nil {
		hint := ""
		if with.InstallHint != "" {
			hint = "; " + with.InstallHint
		}
		return "", fmt.Errorf("the program %s of the context gives no credential: %w%s", with.Command, err, hint)
	}
	var got clientauth.ExecCredential
	if out.Len() > maxExecAnswer {
		return "", fmt.Errorf("the program %s of the context answers with more than %d bytes", with.Command, maxExecAnswer)
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		return "", fmt.Errorf("the program %s of the context answers with no ExecCredential: %w", with.Command, err)
	}
	switch s := got.Status; {
	case got.APIVersion != ask.APIVersion || got.Kind != ask.Kind:
		return "", fmt.Errorf("the program %s of the context answers with %s %s, want %s %s", with.Command,
			got.APIVersion, got.Kind, ask.APIVersion, ask.Kind)
	case s == nil || s.Token == "":
		return "", fmt.Errorf("the program %s of the context answers without a token", with.Command)
	case s.ExpirationTimestamp != nil && !s.ExpirationTimestamp.After(now()):
		return "", fmt.Errorf("the program %s of the context answers with a token that ended at %s", with.Command,
			s.ExpirationTimestamp.UTC().Format(time.RFC3339))
	default:
		return s.Token, nil
	}
}
