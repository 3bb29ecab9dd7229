package stack

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"

	"filippo.io/age"

	"github.com/chandler-fleet/chandler/libs/natsauth"
	"github.com/chandler-fleet/chandler/libs/natsconn"
	"github.com/chandler-fleet/chandler/libs/natsjwt"
)

// secrets are made anew for every stack.
type secrets struct {
	token     string // of the first administrator
	identity  string // opens kubeconfigs; only the installer has it
	recipient string // encrypts kubeconfigs
	grantKey  string // seed of the key that signs grants

	catalogIdentity  string // opens credentials of catalog sources; only the catalog-indexer has it
	catalogRecipient string // encrypts them
	hookKey          string // that secrets of catalogs' hooks are derived from

	bodies string // what the keys of bodies begin with; the kind follows

	nats map[string]string // seeds of the users of NATS, by name
}

func newSecrets() (secrets, error) {
	id, err := age.GenerateX25519Identity()
	if err != nil {
		return secrets{}, fmt.Errorf("make the key for kubeconfigs: %w", err)
	}
	catalogs, err := age.GenerateX25519Identity()
	if err != nil {
		return secrets{}, fmt.Errorf("make the key for credentials of catalogs: %w", err)
	}
	seed, hook, sealing := make([]byte, 32), make([]byte, 32), make([]byte, 32)
	token := make([]byte, 20)
	for _, b := range [][]byte{seed, token, hook, sealing} {
		if _, err := rand.Read(b); err != nil {
			return secrets{}, fmt.Errorf("make secrets: %w", err)
		}
	}
	users := map[string]string{}
	for _, u := range append(natsauth.ServiceUsers(), tester()) {
		if users[u.Name], err = natsconn.NewSeed(); err != nil {
			return secrets{}, err
		}
	}
	return secrets{
		nats: users,

		token:     "cht_" + hex.EncodeToString(token),
		identity:  id.String(),
		recipient: id.Recipient().String(),
		grantKey:  base64.StdEncoding.EncodeToString(seed),

		hookKey: hex.EncodeToString(hook),
		bodies:  hex.EncodeToString(sealing),

		catalogIdentity:  catalogs.String(),
		catalogRecipient: catalogs.Recipient().String(),
	}, nil
}

// newOperator makes NATS in operator mode, as `chandler keys nats --jwt` does. The server keeps in a directory who
// joins.
func newOperator(directory string) (*natsjwt.Installation, error) {
	keys, err := natsjwt.MakeKeys()
	if err != nil {
		return nil, err
	}
	if keys.Users[Test], err = natsconn.NewSeed(); err != nil {
		return nil, err
	}
	made, err := keys.Installation(directory, tester())
	return &made, err
}
