package natsauth

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Account is the account of an installation in a configuration of a server.
const Account = "CHANDLER"

// AgentAccount is the account of the agent of a cluster.
func AgentAccount(clusterID string) string { return Account + "-AGENT-" + clusterID }

// User is a user of the account, or the agent of a cluster, which has an account of its own.
// Exactly one of NKey, Password and Variable says how it is recognised.
type User struct {
	Name string
	Permissions
	// Cluster is the id of the cluster whose agent this is, "" for everybody else.
	Cluster string
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

// AgentUser is the user of the agent of a cluster, without what it is recognised by.
func AgentUser(tenantID, clusterID string) User {
	return User{Name: AgentName(clusterID), Cluster: clusterID, Permissions: OfAgent(tenantID, clusterID)}
}

// JoinUser is who has a token to become the agent of a cluster, without what it is recognised by.
func JoinUser(tenantID, clusterID string) User {
	name := JoinName(clusterID)
	return User{Name: name, Cluster: clusterID, Permissions: permissions(Join, name, tenantID, clusterID)}
}

// Config is the account with these users and those of agents, in the language of nats-server's configuration. It holds
// no secret, unless a user has a password.
func Config(users []User) string {
	var b strings.Builder
	fmt.Fprintf(&b, "accounts {\n  %s {\n    jetstream: enabled\n", Account)
	writeExports(&b, users)
	b.WriteString("    users: [\n")
	for i := range users {
		if users[i].Cluster == "" {
			writeUser(&b, &users[i])
		}
	}
	b.WriteString("    ]\n  }\n")
	for i := range users {
		if users[i].Cluster != "" {
			writeAgent(&b, &users[i])
		}
	}
	b.WriteString("}\n")
	return b.String()
}

// writeExports writes what the account shares with those of agents, each subject with one of them.
func writeExports(b *strings.Builder, users []User) {
	if !slices.ContainsFunc(users, func(u User) bool { return u.Cluster != "" }) {
		return
	}
	b.WriteString("    exports: [\n")
	for i := range users {
		if users[i].Cluster == "" {
			continue
		}
		for _, s := range users[i].Shares() {
			fmt.Fprintf(b, "      {%s: %s, accounts: [%s]}\n", s.kind(), strconv.Quote(s.Subject),
				strconv.Quote(AgentAccount(users[i].Cluster)))
		}
	}
	b.WriteString("    ]\n")
}

// writeAgent writes the account of an agent. It has no streams of its own.
func writeAgent(b *strings.Builder, u *User) {
	fmt.Fprintf(b, "  %s {\n    imports: [\n", strconv.Quote(AgentAccount(u.Cluster)))
	for _, s := range u.Shares() {
		fmt.Fprintf(b, "      {%s: {account: %s, subject: %s}}\n", s.kind(), Account, strconv.Quote(s.Subject))
	}
	b.WriteString("    ]\n    users: [\n")
	writeUser(b, u)
	b.WriteString("    ]\n  }\n")
}

// Share is what the account of an agent imports from that of the installation: a service where the agent publishes, a
// stream where it subscribes.
type Share struct {
	Service bool
	Subject string
}

func (s Share) kind() string {
	if s.Service {
		return "service"
	}
	return "stream"
}

// accountInfo is a request that the account of an agent imports and no agent may send: without it the server gives the
// account all of JetStream's API beside what is imported, which answers first, and that there is no JetStream.
const accountInfo = "$JS.API.INFO"

// Shares are what the account of a user imports who has one of its own.
func (u *User) Shares() []Share {
	list := []Share{{true, accountInfo}}
	for _, s := range u.Publish {
		list = append(list, Share{true, s})
	}
	for _, s := range u.Subscribe {
		list = append(list, Share{false, s})
	}
	return list
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
