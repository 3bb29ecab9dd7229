package keys

import (
	"strings"

	"github.com/chandler-fleet/chandler/libs/natsauth"
	"github.com/chandler-fleet/chandler/libs/natsconn"
)

// NATS are the seeds of the users that an installation has on NATS. The server knows them by their public keys.
type NATS struct {
	Admin          string `json:"admin"`
	CatalogIndexer string `json:"catalogIndexer"`
	Gateway        string `json:"gateway"`
	Installer      string `json:"installer"`
	Resolver       string `json:"resolver"`
}

func makeNATS() (n NATS, err error) {
	for _, into := range []*string{&n.Admin, &n.CatalogIndexer, &n.Gateway, &n.Installer, &n.Resolver} {
		if *into, err = natsconn.NewSeed(); err != nil {
			return n, err
		}
	}
	return n, nil
}

// Seed is that of a user of an installation.
func (n NATS) Seed(user string) string {
	return map[string]string{
		natsauth.Admin: n.Admin, natsauth.CatalogIndexer: n.CatalogIndexer, natsauth.Gateway: n.Gateway,
		natsauth.Installer: n.Installer, natsauth.Resolver: n.Resolver,
	}[user]
}

// Users are those of the installation with their public keys.
func (n NATS) Users() ([]natsauth.User, error) {
	users := natsauth.ServiceUsers()
	for i := range users {
		public, err := natsconn.PublicKey(n.Seed(users[i].Name))
		if err != nil {
			return nil, err
		}
		users[i].NKey = public
	}
	return users, nil
}

// SeedVariable is the variable with the seed of a user.
func SeedVariable(user string) string {
	return "CHANDLER_NATS_" + strings.ToUpper(strings.ReplaceAll(user, "-", "_")) + "_SEED"
}

// variables are all seeds and public keys. A public key that cannot be read is left out: NATS names it then.
func (n NATS) variables() []Variable {
	var all []Variable
	for _, u := range natsauth.ServiceUsers() {
		seed := n.Seed(u.Name)
		all = append(all, Variable{SeedVariable(u.Name), seed})
		if public, err := natsconn.PublicKey(seed); err == nil {
			all = append(all, Variable{natsauth.Variable(u.Name), public})
		}
	}
	return all
}
