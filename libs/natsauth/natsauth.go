// Package natsauth says who may publish and who may subscribe to what on NATS: one table, from which the permissions of
// every user, the configuration of the server, the document and the tests come.
//
// An installation has an account of its own, in it each service as a user. The agent of each cluster whose executor
// runs elsewhere is the one user of an account of its own, which shares with that of the installation what the table
// says and nothing else: what the server itself answers an agent or acknowledges stays in the agent's account, whatever
// subject the agent names for that.
//
// Every user has its own prefix for inboxes, so that nobody reads what another one is answered. Where an answer goes is
// made from the question's subject (ReplyTo), so that a user who answers may publish to these inboxes alone, and nobody
// who asks chooses where it publishes.
package natsauth

import (
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/protocol"
)

// Users of an installation. Those of services have the names of the services.
const (
	CatalogIndexer = "catalog-indexer"
	Resolver       = "resolver"
	Installer      = "installer"
	Gateway        = "gateway"
	// Admin is a person who maintains the streams: chandler bus rebuild. No service uses it.
	Admin = "admin"
	// Agent stands in the table for the agent of each cluster; the name of such a user is AgentName.
	Agent = "agent"
	// Join stands for who has a token to become the agent of a cluster; the name of such a user is JoinName.
	Join = "join"
)

// Services are the users of the four services.
func Services() []string { return []string{CatalogIndexer, Gateway, Installer, Resolver} }

// Row is a line of the table. In Subject <tenant> and <cluster> stand for those of an agent; for everybody else they
// are wildcards.
type Row struct {
	Subject   string
	Meaning   string
	Publish   []string
	Subscribe []string
}

const (
	tenant  = "<tenant>"
	cluster = "<cluster>"
	scope   = "." + tenant + "." + cluster
	// deleted is what the server says when a stream is deleted; advisories are about every change of one.
	deleted    = "$JS.EVENT.ADVISORY.STREAM.DELETED.*"
	advisories = "$JS.EVENT.ADVISORY.STREAM.*.>"
)

// Table is who publishes and who subscribes to what. The stream in a subject of JetStream's API is a wildcard, since an
// account holds the streams of one installation. What an agent reads there is bounded by the subject of the message:
// the requests whose payload decides what is read (DIRECT.GET and MSG.GET without a subject, consumers) nobody may
// send but the administrator. Only the installer and the administrator shape streams, since the configuration of a
// stream can make the server publish elsewhere; only the administrator deletes one.
func Table() []Row {
	withAdmin := append(Services(), Admin)
	rows := []Row{
		{
			protocol.SubjectEvents + ".>", "hints; every service can lead the sequencer",
			withAdmin, withAdmin,
		},
		{
			protocol.SubjectPlans + scope + ".*", "what is wanted of the namespaces of a cluster",
			[]string{Installer},
			[]string{Agent, Installer},
		},
		{
			protocol.SubjectReport + scope + ".*", "what is known of the namespaces of a cluster",
			[]string{Agent, Installer},
			[]string{Installer},
		},
		{protocol.SubjectChunks + ".>", "bundles by digest, in chunks; read by direct get", []string{Installer}, nil},
		{askResolver + ".>", "questions to the resolver", []string{Gateway}, []string{Resolver}},
		{askInstaller + ".>", "questions to the installer", []string{Gateway}, []string{Installer}},
		{
			protocol.RPCPrefix + scope + ".*", "questions to the executor of a cluster",
			[]string{Installer},
			[]string{Agent, Installer},
		},
		{
			protocol.RPCContent + scope, "requests to publish a bundle again",
			[]string{Agent, Installer},
			[]string{Installer},
		},
		{
			protocol.RepeatPrefix + scope, "requests to write reports again",
			[]string{Installer},
			[]string{Agent, Installer},
		},
		{
			protocol.RPCGoAhead + scope, "whether effects are allowed",
			[]string{Agent, Installer},
			[]string{Installer},
		},
		{
			protocol.RPCJoin + scope, "requests to become the agent of a cluster",
			[]string{Join},
			[]string{Installer},
		},
		{
			protocol.RPCRenew + scope, "requests for newer credentials",
			[]string{Agent},
			[]string{Installer},
		},
		{
			protocol.RPCHold + scope, "holds of a cluster that an agent serves",
			[]string{Agent},
			[]string{Installer},
		},
	}
	return append(rows, ofJetStream()...)
}

// ofJetStream are the rows of its API, and of what it says by itself.
func ofJetStream() []Row {
	services, keepers := Services(), []string{Admin, Installer}
	withAdmin := append(slices.Clone(services), Admin)
	everybody := append(slices.Clone(withAdmin), Agent)
	return []Row{
		{"$JS.API.STREAM.INFO.*", "state of a stream, with the subjects that it holds", everybody, nil},
		{"$JS.API.STREAM.NAMES", "which stream holds a subject", keepers, nil},
		{"$JS.API.STREAM.CREATE.*", "a stream that is missing", keepers, nil},
		{"$JS.API.STREAM.UPDATE.*", "a stream whose configuration differs", keepers, nil},
		{"$JS.API.STREAM.PURGE.*", "messages that are to go", keepers, nil},
		{"$JS.API.STREAM.DELETE.*", "a stream that is in the way: a person decides that", []string{Admin}, nil},
		{
			"$JS.API.DIRECT.GET.*." + protocol.SubjectEvents + ".>", "the last hint",
			withAdmin, nil,
		},
		{
			"$JS.API.DIRECT.GET.*." + protocol.SubjectPlans + scope + ".*", "what is wanted of a namespace",
			[]string{Agent, Installer},
			nil,
		},
		{
			"$JS.API.DIRECT.GET.*." + protocol.SubjectReport + scope + ".*", "the last report",
			[]string{Installer},
			nil,
		},
		{
			"$JS.API.DIRECT.GET.*." + protocol.SubjectChunks + "." + tenant + ".>", "a chunk of a bundle",
			[]string{Agent, Installer},
			nil,
		},
		{deleted, "a stream was deleted", nil, services},
		{advisories, "a stream was made, changed or deleted", nil, []string{Installer}},
	}
}

// Subjects of questions between services.
const (
	askResolver  = "chandler.rpc.resolver"
	askInstaller = "chandler.rpc.installer"
)

// Asks are the services that ask on a subject and those that answer there, by Table: who is believed. For subjects
// where no service asks another there is nobody: executors and the hub sign with keys of their own.
func Asks(subject string) (askers, answerers []string) {
	for _, r := range Table() {
		prefix, ok := strings.CutSuffix(r.Subject, ".>")
		if ok && (prefix == askResolver || prefix == askInstaller) && strings.HasPrefix(subject, prefix+".") {
			return r.Publish, r.Subscribe
		}
	}
	return nil, nil
}

// Permissions are what a user may.
type Permissions struct {
	Publish   []string
	Subscribe []string
}

// Of are the permissions of a user of Table but Agent.
func Of(user string) Permissions { return permissions(user, user, "*", "*") }

// OfAgent are the permissions of the agent of a cluster.
func OfAgent(tenantID, clusterID string) Permissions {
	return permissions(Agent, AgentName(clusterID), tenantID, clusterID)
}

// AgentName is the name of the user of a cluster's agent.
func AgentName(clusterID string) string { return Agent + "-" + clusterID }

// JoinName is the name of who has a token to become a cluster's agent.
func JoinName(clusterID string) string { return Join + "-" + clusterID }

// ofCluster is the name of a user of Table in a row of a cluster.
func ofCluster(user, clusterID string) string {
	switch user {
	case Agent:
		return AgentName(clusterID)
	case Join:
		return JoinName(clusterID)
	}
	return user
}

func permissions(role, name, tenantID, clusterID string) Permissions {
	p := Permissions{Subscribe: []string{Inbox(name) + ".>"}}
	fill := strings.NewReplacer(tenant, tenantID, cluster, clusterID)
	for _, r := range Table() {
		subject := fill.Replace(r.Subject)
		if slices.Contains(r.Publish, role) {
			p.Publish = append(p.Publish, subject)
		}
		if slices.Contains(r.Subscribe, role) {
			p.Subscribe = append(p.Subscribe, subject)
			p.Publish = append(p.Publish, r.replies(fill)...)
		}
	}
	slices.Sort(p.Publish)
	slices.Sort(p.Subscribe)
	return p
}

// replies are the subjects to which who hears the questions of a row may answer.
func (r Row) replies(fill *strings.Replacer) []string {
	if !strings.HasPrefix(r.Subject, questions+".") {
		return nil
	}
	subjects := make([]string, 0, len(r.Publish))
	for _, asker := range r.Publish {
		s := ReplyTo(Inbox(ofCluster(asker, cluster)), r.Subject)
		if !strings.HasSuffix(s, ".>") {
			s += ".*"
		}
		subjects = append(subjects, fill.Replace(s))
	}
	return subjects
}

// questions is the prefix of the subjects of questions.
const questions = "chandler.rpc"

// Inbox is the prefix of a user's inboxes, where it gets answers: a subject of whole tokens, so that one pattern stands
// for those of all agents.
func Inbox(user string) string {
	for _, role := range []string{Agent, Join} {
		if id, ok := strings.CutPrefix(user, role+"-"); ok {
			user = role + "." + id
		}
	}
	return "_INBOX." + user
}

// ReplyTo is the prefix of the subjects to which the question on a subject is answered, for who has these inboxes: an
// answer's subject says to what question it is. One token of the asker's choice follows.
func ReplyTo(inbox, subject string) string { return inbox + strings.TrimPrefix(subject, questions) }

// Asker is who asks on a subject and wants to be answered there: a service, or an agent by its name. It is false where
// none of those who may ask on that subject has its inbox there; an agent has its own cluster's alone.
func Asker(subject, reply string) (user string, ok bool) {
	prefix, token := reply, ""
	if i := strings.LastIndexByte(reply, '.'); i >= 0 {
		prefix, token = reply[:i], reply[i+1:]
	}
	if token == "" || strings.ContainsAny(reply, "*> \t\r\n") {
		return "", false
	}
	for _, r := range Table() {
		clusterID, ok := r.matches(subject)
		if !ok || !strings.HasPrefix(r.Subject, questions+".") {
			continue
		}
		for _, user := range r.Publish {
			user = ofCluster(user, clusterID)
			if prefix == ReplyTo(Inbox(user), subject) {
				return user, true
			}
		}
	}
	return "", false
}

// matches reports whether a subject is of this row, and which cluster it names; "" where it names none.
func (r Row) matches(subject string) (clusterID string, ok bool) {
	want, got := strings.Split(r.Subject, "."), strings.Split(subject, ".")
	for i, w := range want {
		switch {
		case i >= len(got):
			return "", false
		case w == ">":
			return clusterID, true
		case w == cluster:
			clusterID = got[i]
		case w != tenant && w != "*" && w != got[i]:
			return "", false
		}
	}
	return clusterID, len(want) == len(got)
}
