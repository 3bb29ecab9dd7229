module github.com/chandler-fleet/chandler/libs/client

go 1.26.0
