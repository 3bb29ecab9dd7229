module github.com/chandler-fleet/chandler/cmd/chandler

go 1.26.0

require github.com/chandler-fleet/chandler/libs v0.0.0

require github.com/chandler-fleet/chandler/migrations v0.0.0

require github.com/chandler-fleet/chandler/services/catalog-indexer v0.0.0

require github.com/chandler-fleet/chandler/services/resolver v0.0.0

require github.com/chandler-fleet/chandler/services/installer v0.0.0

require github.com/chandler-fleet/chandler/services/gateway v0.0.0

require (
	filippo.io/age v1.3.2 // indirect
	filippo.io/hpke v0.4.0 // indirect
	github.com/antithesishq/antithesis-sdk-go v0.8.0-default-no-op // indirect
	github.com/google/go-tpm v0.9.8 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/pgx/v5 v5.12.0 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/minio/highwayhash v1.0.4 // indirect
	github.com/nats-io/jwt/v2 v2.8.2 // indirect
	github.com/nats-io/nats-server/v2 v2.15.2 // indirect
	github.com/nats-io/nkeys v0.4.16 // indirect
	github.com/nats-io/nuid v1.0.1 // indirect
	github.com/rogpeppe/go-internal v1.16.0 // indirect
	github.com/spf13/cobra v1.10.2 // indirect
	github.com/spf13/pflag v1.0.10 // indirect
	go.yaml.in/yaml/v2 v2.4.4 // indirect
	golang.org/x/crypto v0.58.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
	golang.org/x/time v0.16.0 // indirect
	k8s.io/cli-runtime v0.37.0 // indirect
	sigs.k8s.io/yaml v1.6.0 // indirect
)

replace github.com/chandler-fleet/chandler/libs => ../../libs

replace github.com/chandler-fleet/chandler/migrations => ../../migrations

replace github.com/chandler-fleet/chandler/services/catalog-indexer => ../../services/catalog-indexer

replace github.com/chandler-fleet/chandler/services/resolver => ../../services/resolver

replace github.com/chandler-fleet/chandler/services/installer => ../../services/installer

replace github.com/chandler-fleet/chandler/services/gateway => ../../services/gateway
