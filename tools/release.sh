#!/usr/bin/env bash
# make release: what users of a release download, into dist/, with its checksums. What is made is a function of the
# commit, the version, and the versions of Go, helm and Node: docs/howto/release.md.
#
#   tools/release.sh VERSION    called by make, which says where helm is; v1.2.3, or what git describe says
#
#   RELEASE_CHECK=1    makes it a second time, in a clone in another folder, and fails if a checksum differs
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C

# The platforms of the programs; docs/howto/release.md lists them, too.
platforms=(linux/amd64 linux/arm64)
programs=(./cmd/chandler ./services/catalog-indexer ./services/resolver ./services/installer ./services/installer/chandler-agent ./services/gateway)

fail() {
  echo "release: $*" >&2
  exit 1
}
step() { echo "release: $*"; }

# ---- What is refused before anything is made.

if ! changed=$(git status --porcelain 2>&1); then
  fail "a release is made of a commit, and this is no work tree of git: $changed"
fi
if [ -n "$changed" ]; then
  fail "a release is made of a commit, and this work tree has changes that are in none; commit or remove them first:
$changed"
fi

# version is what programs say; it has no v. semver is what Helm and npm take, which know semantic versions alone. A commit
# without a tag before it is known by its name, as make build has it, and comes before every release.
number='(0|[1-9][0-9]*)'
given=${1:-}
version=${given#v}
if [[ $version =~ ^$number\.$number\.$number(-[0-9A-Za-z.-]+)?$ ]]; then
  semver=$version
elif [[ $given =~ ^[0-9a-f]{7,40}$ ]]; then
  semver=0.0.0-g$version
else
  fail "VERSION is \"$given\"; it must be major.minor.patch such as v1.2.3 or v1.2.3-rc.1, or what git describe says"
fi

command -v npm >/dev/null && command -v node >/dev/null ||
  fail "npm is not on this machine, and packs the clients for portals: install Node with npm (on Debian: apt-get install nodejs npm)"
helm=${HELM:?is the path of helm, which make sets}
[ -x "$helm" ] || fail "there is no helm at $helm: run make release, which builds it"

# ---- What it is made with. Settings of whoever builds must not change what is built.

seconds=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH=$seconds
export CGO_ENABLED=0 GOFLAGS= GOAMD64=v1 GOARM64=v8.0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
out=$work/dist
mkdir "$out"

# build GOOS GOARCH FOLDER: the programs of a platform. The stamp of git is left out: it has the tags around the commit, and
# a release is tagged after it was made.
build() {
  GOOS=$1 GOARCH=$2 go build -trimpath -buildvcs=false -o "$3/" \
    -ldflags "-s -w -X github.com/chandler-fleet/chandler/libs/service.version=$version" "${programs[@]}"
}

# folder NAME: makes a folder that is to be packed, and prints it. Everything that is packed has the licence.
folder() {
  mkdir -p "$work/pack/$1"
  cp LICENSE "$work/pack/$1/"
  echo "$work/pack/$1"
}
pack() { tools/pack.sh "$1" "$2" "$seconds"; }

# ---- What is made.

host=$(go env GOHOSTOS)/$(go env GOHOSTARCH)
chandler=
for platform in "${platforms[@]}"; do
  step "programs for $platform"
  name=chandler-$version-${platform/\//-}
  dir=$(folder "$name")
  build "${platform%/*}" "${platform#*/}" "$dir"
  pack "$dir" "$out/$name.tar.gz"
  [ "$platform" != "$host" ] || chandler=$dir/chandler
done
if [ -z "$chandler" ]; then
  step "programs for $host, which write the manual"
  mkdir "$work/host"
  build "${host%/*}" "${host#*/}" "$work/host"
  chandler=$work/host/chandler
fi

step "man pages and completions"
name=chandler-manual-$version
dir=$(folder "$name")
mkdir "$dir/completions"
"$chandler" man "$dir/man1" >/dev/null
for shell in bash zsh fish; do "$chandler" completion "$shell" >"$dir/completions/chandler.$shell"; done
pack "$dir" "$out/$name.tar.gz"

step "charts"
mkdir "$work/chart"
for chart in chandler chandler-agent; do
  "$helm" package "deploy/helm/$chart" --version "$semver" --app-version "$version" --destination "$work/chart" >/dev/null
  tar -xzmf "$work/chart/$chart-$semver.tgz" -C "$work/chart" # helm writes the time of packing, rounded up to the future
  pack "$work/chart/$chart" "$out/$chart-$semver.tgz"
done

for client in typescript backstage backstage-card; do
  step "client for npm: clients/$client"
  built=$(tools/clients.sh "$client")
  dir=$work/npm/$client
  mkdir -p "$dir"
  tar -C "$built" --exclude=./node_modules -c . | tar -C "$dir" -x
  cp LICENSE "$dir/"
  # What was compiled is packed: no script of the package runs.
  file=$(cd "$dir" && npm pkg set "version=$semver" && npm pack --ignore-scripts --silent --pack-destination ..)
  rm -rf "$work/npm/package"
  tar -xzf "$work/npm/$file" -C "$work/npm" # npm's order and compression are those of its version
  pack "$work/npm/package" "$out/$file"
done

step "client in Go"
name=chandler-go-client-$version
dir=$(folder "$name")
git archive HEAD:libs/client | tar -x -C "$dir"
pack "$dir" "$out/$name.tar.gz"

step "OpenAPI documents"
cp services/gateway/openapi.yaml services/gateway/openapi-3.0.yaml "$out/"

(cd "$out" && sha256sum -- *) >"$work/SHA256SUMS"

# ---- Whether it is the same again: another folder, another mask of permissions, what is committed alone.

if [ -n "${RELEASE_CHECK:-}" ]; then
  step "all of it again, to compare"
  git clone --quiet --no-tags . "$work/again"
  # Tools and packages of npm are not made again; git must not see the link.
  mkdir -p .cache
  ln -s "$PWD/.cache" "$work/again/.cache"
  echo /.cache >>"$work/again/.git/info/exclude"
  (umask 077 && RELEASE_CHECK='' "$work/again/tools/release.sh" "$given" >"$work/log" 2>&1) || {
    cat "$work/log" >&2
    fail "the second time it could not be made; the reason stands above"
  }
  diff "$work/SHA256SUMS" "$work/again/dist/SHA256SUMS" >&2 ||
    fail "the second time other files were made than the first: the checksums above differ"
  step "both times the same $(wc -l <"$work/SHA256SUMS") files"
fi

# The checksums come last: without them dist/ is not complete.
rm -rf dist
mkdir dist
cp "$out"/* dist/
cp "$work/SHA256SUMS" dist/
step "chandler $version in dist/"
cat dist/SHA256SUMS
