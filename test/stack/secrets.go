package stack

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"

	"filippo.io/age"
)

// secrets are made anew for every stack.
type secrets struct {
	token     string // of the first administrator
	identity  string // opens kubeconfigs; only the installer has it
	recipient string // encrypts kubeconfigs
	grantKey  string // seed of the key that signs grants
}

func newSecrets() (secrets, error) {
	id, err := age.GenerateX25519Identity()
	if err != nil {
		return secrets{}, fmt.Errorf("make the key for kubeconfigs: %w", err)
	}
	seed := make([]byte, 32)
	token := make([]byte, 20)
	for _, b := range [][]byte{seed, token} {
		if _, err := rand.Read(b); err != nil {
			return secrets{}, fmt.Errorf("make secrets: %w", err)
		}
	}
	return secrets{
		token:     "cht_" + hex.EncodeToString(token),
		identity:  id.String(),
		recipient: id.Recipient().String(),
		grantKey:  base64.StdEncoding.EncodeToString(seed),
	}, nil
}
