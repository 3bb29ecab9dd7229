module github.com/chandler-fleet/chandler/migrations

go 1.26.0
