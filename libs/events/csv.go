package events

// CSVPhaseChanged is one transition of a ClusterServiceVersion. Subject: cluster/namespace/name.
type CSVPhaseChanged struct {
	Cluster   string `json:"cluster"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Package   string `json:"package"`
	Version   string `json:"version"`
	Phase     string `json:"phase"`  // R-CSV §6.2
	Reason    string `json:"reason"` // R-CSV §6.2
	Content   string `json:"content"`
	Plan      string `json:"plan"`
}

// EventType implements Payload.
func (CSVPhaseChanged) EventType() Type { return "csv.phase-changed.v1" }

// CSVRemoved ends the stream: the ClusterServiceVersion is gone from the cluster.
type CSVRemoved struct {
	Reason string `json:"reason"` // Replaced, Deleted
}

// EventType implements Payload.
func (CSVRemoved) EventType() Type { return "csv.removed.v1" }

// CSVFlapping stands for further phase changes of a CSV that changes too often to record each.
type CSVFlapping struct {
	Changes int `json:"changes"` // in the window
	Window  int `json:"window"`  // seconds
}

// EventType implements Payload.
func (CSVFlapping) EventType() Type { return "csv.flapping.v1" }
