module github.com/chandler-fleet/chandler/tools/testrun

go 1.26.0
