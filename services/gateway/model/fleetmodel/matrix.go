package fleetmodel

import "github.com/chandler-fleet/chandler/services/gateway/model"

// What the rows of a matrix are.
const (
	MatrixByPackage = "package"
	MatrixByCluster = "cluster"
)

// StateNotInstalled is the state of a cell of which a subscription asks and nothing is installed.
const StateNotInstalled = "NotInstalled"

// MatrixRow is what runs of one package, or on one cluster.
type MatrixRow struct {
	Package      string          `json:"package,omitempty" doc:"Of a row by package"`
	Cluster      string          `json:"cluster,omitempty" doc:"Of a row by cluster"`
	Operators    int             `json:"operators" doc:"How many are installed"`
	Clusters     int             `json:"clusters,omitempty" doc:"On how many clusters; by package"`
	NotInstalled int             `json:"notInstalled,omitempty" doc:"How many subscriptions ask for it and have nothing installed"`
	Succeeded    int             `json:"succeeded,omitempty" doc:"How many run"`
	Failed       int             `json:"failed,omitempty" doc:"How many have failed"`
	Behind       int             `json:"behind,omitempty" doc:"How many run an older version than the newest of the channel that their subscription follows"`
	Newest       string          `json:"newest,omitempty" doc:"Newest version that runs anywhere; by package"`
	Skew         int             `json:"skew,omitempty" doc:"How many releases lie between the oldest version that runs, which is not counted, and the newest one, which is: those that the followed catalogs have, and those that run. 0 where all run the same version; by package"`
	Versions     []MatrixVersion `json:"versions,omitempty" nullable:"false" doc:"Versions that run, newest first; by package"`
	Channels     []MatrixChannel `json:"channels,omitempty" nullable:"false" doc:"Channels that subscriptions follow; by package"`
	Cells        []MatrixCell    `json:"cells,omitempty" nullable:"false" doc:"By package and namespace; by cluster"`
}

// MatrixVersion is a version of a package that runs.
type MatrixVersion struct {
	Version   string   `json:"version"`
	Operators int      `json:"operators"`
	Clusters  int      `json:"clusters"`
	Succeeded int      `json:"succeeded,omitempty"`
	Failed    int      `json:"failed,omitempty"`
	Behind    *int     `json:"behind,omitempty" doc:"How many versions of a followed channel are newer, the most of its clusters; absent where no subscription follows one that can be read"`
	Some      []string `json:"some" nullable:"false" doc:"Up to 5 of the clusters, by name"`
}

// MatrixChannel is a channel that subscriptions follow.
type MatrixChannel struct {
	Catalog   string `json:"catalog" doc:"One of the hub by its name, one of a cluster as cluster/namespace/name"`
	Variant   string `json:"variant,omitempty" doc:"Version of Kubernetes whose variant of the catalog it is; of catalogs with variants"`
	Channel   string `json:"channel"`
	Version   string `json:"version" doc:"Newest that it offers"`
	CSV       string `json:"csv"`
	Operators int    `json:"operators" doc:"How many operators follow it"`
}

// MatrixCell is an operator on a cluster, or that a subscription asks for one.
type MatrixCell struct {
	Package      string `json:"package"`
	Namespace    string `json:"namespace"`
	CSV          string `json:"csv,omitempty" doc:"Name of what is installed"`
	Version      string `json:"version,omitempty"`
	State        string `json:"state" enum:"Pending,InstallReady,Installing,Succeeded,Failed,Unknown,Replacing,Deleting,NotInstalled" doc:"Phase of the operator; NotInstalled where a subscription asks for it and nothing is installed"`
	Subscription string `json:"subscription,omitempty" doc:"Which asks for it; absent where none does that the caller may list"`
	Owner        string `json:"owner,omitempty" doc:"Fleet subscription that owns the subscription; absent where a person made it"`
	Generated    bool   `json:"generated,omitempty" doc:"The subscription was made for a dependency"`
	Catalog      string `json:"catalog,omitempty" doc:"That it follows; absent where the caller may not list it"`
	Channel      string `json:"channel,omitempty" doc:"That it follows; the default one where the subscription names none"`
	Offered      string `json:"offered,omitempty" doc:"Newest version of that channel"`
	Behind       *int   `json:"behind,omitempty" doc:"How many versions of that channel are newer; absent where there is none that can be read"`
}

// MatrixFilter chooses what stands in a matrix; empty fields choose all.
type MatrixFilter struct {
	By              string
	Package         string
	Cluster         string
	ClusterSelector string
	model.Page
}
