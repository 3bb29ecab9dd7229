# syntax=docker/dockerfile:1

# One image for each program of Chandler:
#
#   docker build --build-arg SERVICE=gateway --build-arg VERSION=0.1.0 -t chandler/gateway:0.1.0 .
#
# SERVICE is catalog-indexer, resolver, installer, gateway, chandler-agent, or chandler (the CLI, whose `migrate`
# prepares the database). The image holds that program as /app, /probe for health checks, certificates
# of public authorities and an empty /tmp: no shell, no package manager, nothing that runs as root,
# and nothing that needs a writable root file system.

ARG GO_VERSION=1.26

# Compiled on the builder's own platform for the target's, so that a foreign platform needs no emulation.
FROM --platform=${BUILDPLATFORM} golang:${GO_VERSION} AS build
ARG SERVICE
ARG VERSION=unknown
ARG TARGETOS=linux
ARG TARGETARCH=amd64
ENV CGO_ENABLED=0 GOFLAGS=-trimpath GOTOOLCHAIN=local
WORKDIR /src
# The whole workspace: what was tested together is built together.
COPY . .
# Both caches outlive the build, so that five images cost little more than one.
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    set -eu; \
    case "${SERVICE}" in \
      catalog-indexer|resolver|installer|gateway) package="./services/${SERVICE}" ;; \
      chandler-agent) package=./services/installer/chandler-agent ;; \
      chandler) package=./cmd/chandler ;; \
      *) echo "SERVICE is \"${SERVICE}\"; it must be catalog-indexer, resolver, installer, gateway, chandler-agent or chandler" >&2; exit 1 ;; \
    esac; \
    export GOOS="${TARGETOS}" GOARCH="${TARGETARCH}"; \
    go build -ldflags "-s -w -X github.com/chandler-fleet/chandler/libs/service.version=${VERSION}" -o /image/app "${package}"; \
    cd deploy/probe; \
    GOWORK=off go build -ldflags '-s -w' -o /image/probe .
# /image becomes the root of the final image. The numeric user has a name for those who look.
RUN set -eu; \
    mkdir -p /image/etc/ssl/certs; \
    mkdir -m 1777 /image/tmp; \
    cp /etc/ssl/certs/ca-certificates.crt /image/etc/ssl/certs/; \
    echo 'chandler:x:65532:65532:chandler:/tmp:/none' > /image/etc/passwd; \
    echo 'chandler:x:65532:' > /image/etc/group

FROM scratch
ARG SERVICE
ARG VERSION=unknown
LABEL org.opencontainers.image.title="chandler ${SERVICE}" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /image/ /
# A number, since Kubernetes cannot prove of a name that it is not root.
USER 65532:65532
ENV HOME=/tmp
ENTRYPOINT ["/app"]
