module github.com/chandler-fleet/chandler/examples/port

go 1.26.0

require github.com/chandler-fleet/chandler/libs/client v0.0.0

replace github.com/chandler-fleet/chandler/libs/client => ../../libs/client
