// Package hubclient is the executor's side towards the hub, over NATS: it reads PLANS, fetches CONTENT and
// writes REPORTS (package protocol). It makes no JetStream consumer: last values are read by direct
// get, news come by a plain subscription, so thousands of executors cost the stream nothing.
package hubclient
