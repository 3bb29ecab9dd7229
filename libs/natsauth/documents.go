package natsauth

import (
	"fmt"
	"slices"
	"strings"
)

// Markdown is docs/nats.md: the table for people.
func Markdown() string {
	var b strings.Builder
	b.WriteString(`# NATS: who may publish and subscribe to what

<!-- Generated from libs/natsauth by make generate. Do not edit. -->

Each installation has an account of its own, in it one user for each service and one for the administrator. The agent of
each cluster whose executor runs elsewhere is the one user of an account of its own: it imports what the table allows the
agent, as a service where it publishes and as a stream where it subscribes, and beside that ` + "`$JS.API.INFO`" + `, which the agent
may not send. Nothing else is allowed. In each subject ` + "`<tenant>`" + ` and
` + "`<cluster>`" + ` are those of the agent; for all others they are wildcards. Each user may also subscribe to its own
inboxes, ` + "`_INBOX.<user>.>`" + ` (` + "`_INBOX.agent.<cluster>.>`" + ` for an agent, ` + "`_INBOX.join.<cluster>.>`" + ` for who wants
to become one). Who answers a question may publish
to the inboxes for answers on that subject alone: those to ` + "`chandler.rpc.resolver.why`" + ` of the gateway go to
` + "`_INBOX.gateway.resolver.why.*`" + `. Nobody is given ` + "`allow_responses`" + `: by it, who asks chooses where the
other one publishes.

On a server in operator mode (` + "`chandler keys nats --jwt`" + `) the same table is in JWTs, and agents get in while it runs:
[ADR 0076](adr/0076-agents-join-by-tokens.md). Who has a join token is ` + "`join`" + ` here.

| subject | meaning | publish | subscribe |
|---|---|---|---|
`)
	for _, r := range Table() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", r.Subject, r.Meaning, names(r.Publish), names(r.Subscribe))
	}
	return b.String()
}

func names(list []string) string {
	if len(list) == 0 {
		return "–"
	}
	return strings.Join(slices.Sorted(slices.Values(list)), ", ")
}

// Variable is the name of the environment variable of a server that holds the public key of a user.
func Variable(user string) string {
	return "CHANDLER_NATS_" + strings.ToUpper(strings.ReplaceAll(user, "-", "_")) + "_NKEY"
}

// ComposeConfig is the configuration of the server of docker-compose.yaml. It takes the public keys of the users from
// its environment.
func ComposeConfig() string {
	users := ServiceUsers()
	for i := range users {
		users[i].Variable = Variable(users[i].Name)
	}
	return `# NATS of docker-compose.yaml: one server with JetStream on a volume.
# Generated from libs/natsauth by make generate. Do not edit: for agents of clusters mount a file of your own
# (CHANDLER_NATS_CONFIG in .env), with the accounts that "chandler keys nats" writes.
listen: 0.0.0.0:4222
# For the health check, which runs inside the container.
http: 127.0.0.1:8222
# A client that does not say who it is within this many seconds is let go.
authorization {timeout: 5}
# The largest message: what is larger goes in chunks, or without what is only shown.
max_payload: 1MB

jetstream {
  store_dir: /data
  # Contents, plans and reports of a few hundred clusters; NATS refuses what is beyond it.
  max_memory_store: 64MB
  max_file_store: 8GB
}

` + Config(users)
}
