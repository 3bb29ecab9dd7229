package natsauth

import (
	"fmt"
	"strconv"
	"strings"
)

// Account is the account of an installation in a configuration of a server.
const Account = "CHANDLER"

// User is a user of the account. Exactly one of NKey, Password and Variable says how it is recognised.
type User struct {
	Name string
	Permissions
	// NKey is the public key; the user proves that it has the seed.
	NKey string
	// Variable names an environment variable of the server with the public key.
	Variable string
	// Password is for tests, where a URL has to be enough.
	Password string
}

// ServiceUsers are the users that every installation has, without what they are recognised by.
func ServiceUsers() []User {
	var users []User
	for _, name := range append(Services(), Admin) {
		users = append(users, User{Name: name, Permissions: Of(name)})
	}
	return users
}

// Everything is what an account of one user may.
func Everything() Permissions { return Permissions{Publish: []string{">"}, Subscribe: []string{">"}} }

// Config is the account with these users, in the language of nats-server's configuration. It holds no secret, unless a
// user has a password.
func Config(users []User) string {
	var b strings.Builder
	fmt.Fprintf(&b, "accounts {\n  %s {\n    jetstream: enabled\n    users: [\n", Account)
	for i := range users {
		writeUser(&b, &users[i])
	}
	b.WriteString("    ]\n  }\n}\n")
	return b.String()
}

func writeUser(b *strings.Builder, u *User) {
	fmt.Fprintf(b, "      # %s\n      {\n", u.Name)
	switch {
	case u.Variable != "":
		fmt.Fprintf(b, "        nkey: $%s\n", u.Variable)
	case u.NKey != "":
		fmt.Fprintf(b, "        nkey: %s\n", u.NKey)
	default:
		fmt.Fprintf(b, "        user: %s\n        password: %s\n", strconv.Quote(u.Name), strconv.Quote(u.Password))
	}
	b.WriteString("        permissions {\n")
	writeSubjects(b, "publish", u.Publish)
	writeSubjects(b, "subscribe", u.Subscribe)
	b.WriteString("        }\n      }\n")
}

// writeSubjects writes a list of what is allowed. An empty one denies everything: without a list the server allows
// everything.
func writeSubjects(b *strings.Builder, verb string, subjects []string) {
	if len(subjects) == 0 {
		fmt.Fprintf(b, "          %s {deny: \">\"}\n", verb)
		return
	}
	fmt.Fprintf(b, "          %s {\n            allow: [\n", verb)
	for _, s := range subjects {
		fmt.Fprintf(b, "              %s\n", strconv.Quote(s))
	}
	b.WriteString("            ]\n          }\n")
}
