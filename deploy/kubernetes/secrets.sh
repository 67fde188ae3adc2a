#!/usr/bin/env bash
# Create the secrets for the master key and the store's credentials from files outside the checkout,
# so that they are in no manifest and on no command line. `secrets.sh MASTER_KEY_FILE
# [CREDENTIALS_FILE]`; the latter has lines NAME=VALUE. Leave it out if the pods have access anyway.
# It may be run again: credentials are replaced, and another master key is refused.
set -euo pipefail

key=quietcorpus-master-key
if there="$(kubectl get secret "$key" --ignore-not-found --output=jsonpath='{.data.master-key}')" \
  && [ -n "$there" ]; then
  base64 --decode <<< "$there" | cmp --quiet - "$1" || {
    echo "secrets.sh: $key holds another key; see docs/guides/upgrades.md, and delete it first" >&2
    exit 1
  }
else
  kubectl create secret generic "$key" --from-file=master-key="$1"
fi
[ -n "${2:-}" ] || exit 0
# Applied by the server: the client's own way keeps a second copy in an annotation.
kubectl create secret generic quietcorpus-storage --from-env-file="$2" --dry-run=client --output=yaml \
  | kubectl apply --server-side --force-conflicts --filename=-
