module github.com/chandler-fleet/chandler/services/resolver

go 1.26.0

require github.com/chandler-fleet/chandler/libs v0.0.0

require github.com/chandler-fleet/chandler/migrations v0.0.0

require (
	github.com/blang/semver/v4 v4.0.0 // indirect
	github.com/google/go-cmp v0.7.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/pgx/v5 v5.12.0 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/nats-io/nats.go v1.55.0 // indirect
	github.com/nats-io/nkeys v0.4.16 // indirect
	github.com/nats-io/nuid v1.0.1 // indirect
	golang.org/x/crypto v0.58.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
	pgregory.net/rapid v1.3.0 // indirect
)

replace github.com/chandler-fleet/chandler/libs => ../../libs

replace github.com/chandler-fleet/chandler/migrations => ../../migrations
