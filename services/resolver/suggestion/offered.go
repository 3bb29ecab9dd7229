package suggestion

import (
	"github.com/chandler-fleet/chandler/services/resolver/offer"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// offered is what a package offers; nil offers nothing.
type offered struct{ list []offer.Channel }

// channels are the names, the default channel first.
func (o *offered) channels() []string {
	if o == nil {
		return nil
	}
	out := make([]string, 0, len(o.list))
	for i := range o.list {
		out = append(out, o.list[i].Name)
	}
	return out
}

// csvs are the bundles that a channel offers, from the head down; of all channels where it is "".
func (o *offered) csvs(channel string) []string {
	if o == nil {
		return nil
	}
	var out []string
	seen := map[string]bool{}
	for i := range o.list {
		if channel != "" && o.list[i].Name != channel {
			continue
		}
		for _, e := range o.list[i].Entries {
			if !seen[e.Name] {
				seen[e.Name] = true
				out = append(out, e.Name)
			}
		}
	}
	return out
}

// channelLike is the channel of that name, else the default one.
func (o *offered) channelLike(name string) string {
	for i := range o.list {
		if name == "" || o.list[i].Name == name {
			return name
		}
	}
	if len(o.list) == 0 {
		return name
	}
	return o.list[0].Name
}

// fitted takes a startingCSV out that the channel does not have, and says so.
func (o *offered) fitted(sub resolution.Subscription, channel string) ([]Change, string) {
	if sub.StartingCSV == "" {
		return nil, ""
	}
	for i := range o.list {
		if _, has := o.list[i].All[sub.StartingCSV]; has && (channel == "" || o.list[i].Name == channel) {
			return nil, ""
		}
	}
	return []Change{{fieldStartingCSV, sub.StartingCSV, ""}}, ", without startingCSV " + sub.StartingCSV
}
