#!/usr/bin/env bash
# The official checks of the Model Context Protocol, against our command as a user runs it.
#
# Installs the protocol's conformance suite and its inspector (with the Node they need) under
# .cache/conformance, once; needs npm. The table at the end says what was run and what was not.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

cache=.cache/conformance
# The stable suite ends with the protocol of 2025; the one of 2026 is in the coming release.
packages=(
    node@22
    conformance-2025@npm:@modelcontextprotocol/conformance@0.1.16
    conformance-2026@npm:@modelcontextprotocol/conformance@0.2.0-alpha.12
    @modelcontextprotocol/inspector@2.12.0
)

command -v npm >/dev/null || { echo "make conformance needs npm (Node 20 or newer)." >&2; exit 1; }
if [[ "$(cat "$cache/installed" 2>/dev/null)" != "${packages[*]}" ]]; then
    echo "Installing the conformance suite and the inspector into $cache"
    rm -rf "$cache"
    mkdir -p "$cache"
    npm install --prefix "$cache" --no-fund --no-audit --loglevel=error "${packages[@]}"
    echo "${packages[*]}" >"$cache/installed"
fi

export PATH="$PWD/$cache/node_modules/.bin:$PWD/.venv/bin:$PATH"
exec python -m tests.conformance.checks "$cache/node_modules" "$@"
