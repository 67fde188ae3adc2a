#!/usr/bin/env bash
# The master key and the store's credentials, from files outside the checkout: in no manifest, and
# on no command line. `secrets.sh MASTER_KEY_FILE [CREDENTIALS_FILE]`; the latter has lines
# NAME=VALUE, and is left out where the pods get at the store without.
set -euo pipefail
kubectl create secret generic quietcorpus-master-key --from-file=master-key="$1"
[ -z "${2:-}" ] || kubectl create secret generic quietcorpus-storage --from-env-file="$2"
