#!/usr/bin/env bash
# Installs what the tests need from the system: a C compiler (for -race), OpenSSH's agent, the programs of
# PostgreSQL, curl and jq; and what the linters of the OpenAPI document and the clients need: Node and npm. As root
# with apt-get it installs them, else it says in one sentence what is missing.
#
#   tools/prepare.sh             what the tests need
#   tools/prepare.sh postgres    what the demo needs
#   tools/prepare.sh compiler    what tests without a database need
#   tools/prepare.sh node        what the linters of the OpenAPI document and the clients need
set -euo pipefail

have_gcc() { command -v gcc >/dev/null || command -v cc >/dev/null; }

have_postgres() {
  [ -n "${CHANDLER_DATABASE_URL:-}" ] && return 0
  command -v initdb >/dev/null && return 0
  compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null
}

# What docs/portals.md is followed with.
have_curl() { command -v curl >/dev/null && command -v jq >/dev/null; }

# OpenSSH's agent signs in a test of keys that are elsewhere.
have_agent() { command -v ssh-agent >/dev/null; }

have_node() { command -v node >/dev/null && command -v npm >/dev/null; }

packages=()
case "${1:-}" in
  node) have_node || packages+=(nodejs npm) ;;
  *)
    [ "${1:-}" = postgres ] || have_gcc || packages+=(gcc libc6-dev)
    [ "${1:-}" = postgres ] || have_agent || packages+=(openssh-client)
    [ -n "${1:-}" ] || have_curl || packages+=(curl jq)
    [ "${1:-}" = compiler ] || have_postgres || packages+=(postgresql)
    ;;
esac
[ ${#packages[@]} -eq 0 ] && exit 0

if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
  echo "Missing on this machine: ${packages[*]}. Install them with the system's package manager (on Debian: sudo apt-get install ${packages[*]}) and run this again." >&2
  exit 1
fi

echo "installing ${packages[*]} with apt-get; this takes about a minute"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export DEBIAN_FRONTEND=noninteractive
# The package would start a server of its own; the tests start private ones.
install() { apt-get -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 install -y --no-install-recommends "${packages[@]}" >"$log" 2>&1; }
if ! install; then
  apt-get -o Acquire::Retries=3 update >"$log" 2>&1 && install || {
    cat "$log" >&2
    echo "apt-get could not install ${packages[*]}; the reason stands above." >&2
    exit 1
  }
fi
