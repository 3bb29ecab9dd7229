module github.com/chandler-fleet/chandler/deploy/probe

go 1.26.0
